"""Shared by all servers: listening, announcing the address, and stopping on a signal or with the parent process."""

import asyncio
import gc
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from math import inf
from pathlib import Path

from aiohttp import web

from harness.model.errors import ConfigError
from harness.simulator.engine.events import EventLoop


@dataclass(frozen=True, slots=True)
class ListenOptions:
    """Where to listen. Port 0 is any free port; `ready_file` gets the first line of output once it answers."""

    host: str = "127.0.0.1"
    port: int = 0
    ready_file: Path | None = None
    die_with_parent: bool = False


@asynccontextmanager
async def listening(
    app: web.Application, listen: ListenOptions, name: str, *, patient: bool = True
) -> AsyncIterator[tuple[str, Callable[[], int]]]:
    """Serve the application, called `name` in errors; yields its address and a function that counts its requests.

    Unless `patient`, a handler is cancelled when its client hangs up.

    Raises:
        ConfigError: it cannot listen on that address.
    """
    app.middlewares.append(_survive_clients)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0, handler_cancellation=not patient)
    await runner.setup()
    try:
        site = web.TCPSite(runner, listen.host, listen.port, reuse_address=True, backlog=2048)
        try:
            await site.start()
        except OSError as error:
            message = f"{name} can't listen on {listen.host}:{listen.port}: {error.strerror}"
            raise ConfigError(message, "give another --port, or 0 for any free port") from error
        server = runner.server
        assert server is not None
        _break_cycles(server)
        yield f"http://{listen.host}:{runner.addresses[0][1]}", lambda: server.requests_count
    finally:
        await runner.cleanup()


@web.middleware
async def _survive_clients(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """Ignore clients that hang up before the response, and refuse bodies nested beyond Python's stack."""
    try:
        return await handler(request)
    except ConnectionError:
        return web.Response()
    except RecursionError:
        return web.Response(status=400, text="the body is nested too deeply\n")


def _break_cycles(server: web.Server) -> None:
    """Break the reference cycle of closed connections, so that they are freed at once.

    asyncio's transports (up to Python 3.12) keep one of their own bound methods: a kilobyte each that only a full
    garbage collection would find, which stops a large model for seconds.
    """
    original = server.connection_lost

    def lost(handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        getattr(handler.transport, "__dict__", {}).pop("_read_ready_cb", None)
        original(handler, exc)

    server.connection_lost = lost  # type: ignore[method-assign]  # aiohttp has no other hook


def announce(listen: ListenOptions, facts: Mapping[str, object]) -> None:
    """Print the facts as one line of JSON, and write it to the ready file, which appears complete."""
    line = json.dumps({**facts, "pid": os.getpid()})
    print(line, flush=True)
    if listen.ready_file is not None:
        unfinished = listen.ready_file.with_name(f"{listen.ready_file.name}.{os.getpid()}")
        unfinished.write_text(line + "\n")
        unfinished.replace(listen.ready_file)


class StopSignal:
    """True after SIGTERM, SIGINT, or the end of the parent process if `die_with_parent`."""

    def __init__(self, listen: ListenOptions) -> None:
        self.event = asyncio.Event()
        self._parent = os.getppid() if listen.die_with_parent else None
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.event.set)

    def __bool__(self) -> bool:
        return self.event.is_set() or (self._parent is not None and os.getppid() != self._parent)


# --- garbage collection of a process that serves for days and holds a large model ------------------------------------
# Python's full collections scan all old objects, which stops a model of 50,000 pods for seconds. Runs, executions and
# connections are freed by reference counting, and young collections find what requests leave, in milliseconds. Little
# remains, such as refused requests whose errors refer to each other; full collections for it run in idle moments only,
# and a model that is never idle grows by no more than that.


_NEVER = 2**31 - 1  # effectively disables automatic full collections
_WORTHWHILE = 1_000  # requests since the last full collection
_BLOCK_S = 1e-6  # initial estimate of the time to scan one memory block, on the high side
_MARGIN = 2.0  # a collection may take this many times as long as the last one
_UNNOTICED_S = 0.01  # duration of a collection that delays no request noticeably


class Collector:
    """Runs full garbage collections in place of Python, whose automatic ones it disables."""

    def __init__(self) -> None:
        gc.collect()
        gc.freeze()  # exempts loaded modules
        gc.set_threshold(5_000, 2, _NEVER)
        self._block_s = _BLOCK_S
        self._seen = self._cleaned = 0

    def collect_if_idle(self, requests: int, quiet_s: float) -> bool:
        """Collect if worthwhile and nothing is delayed; returns whether it did.

        Args:
            requests: number of requests answered so far.
            quiet_s: seconds until the next simulated action.
        """
        idle, self._seen = requests == self._seen, requests
        needed_s = _MARGIN * self._block_s * sys.getallocatedblocks()
        if requests - self._cleaned < _WORTHWHILE or needed_s > (quiet_s if idle else _UNNOTICED_S):
            return False
        blocks, begun = sys.getallocatedblocks(), time.perf_counter()
        gc.collect()
        self._block_s = (time.perf_counter() - begun) / blocks
        self._cleaned = requests
        return True


# --- simulated time tied to wall time --------------------------------------------------------------------------------


_LATE_S = 1.0


class WallClock:
    """Runs an event loop in wall time.

    Call `advance` before reading or changing the simulation from outside: it runs everything due by now. It also wakes
    `run`, since an action scheduled from outside may be due before the one that `run` sleeps for.
    """

    def __init__(self) -> None:
        self.loop = EventLoop()
        self.origin_at = time.time_ns()
        self._origin = time.monotonic()
        self._changed = asyncio.Event()
        self._advancing = False
        self.lag_s = 0.0  # how far the simulation was behind wall time at the last `advance`
        self._worst_lag_s = 0.0

    def drive(self, loop: EventLoop) -> None:
        """Run this event loop from now on."""
        self.loop = loop

    @property
    def now(self) -> float:
        """Wall-clock seconds since the simulation began."""
        return time.monotonic() - self._origin

    @property
    def now_at(self) -> int:
        """The same instant in UTC ns, on the clock of the simulation's timestamps."""
        return self.origin_at + int(self.now * 1e9)

    @property
    def quiet_s(self) -> float:
        """Seconds until the next action is due."""
        return max(0.0, self.loop.next_at - self.now)

    def advance(self) -> None:
        """Run everything due by now."""
        if self._advancing:
            return  # called from an action that it runs
        self._advancing = True
        try:
            now = self.now
            self.lag_s = max(0.0, now - self.loop.next_at) if self.loop.next_at < inf else 0.0
            self._worst_lag_s = max(self._worst_lag_s, self.lag_s)
            self.loop.run(now)
        finally:
            self._advancing = False
        self._changed.set()

    async def run(self) -> None:
        """Keep simulated time in step with wall time, forever."""
        while True:
            self.advance()
            self._changed.clear()
            wait = self.quiet_s
            try:
                async with asyncio.timeout(None if wait == inf else wait):
                    await self._changed.wait()
            except TimeoutError:
                pass

    def lateness(self) -> float:
        """The largest lag in seconds since the last call; 0 if it was a second or less."""
        worst, self._worst_lag_s = self._worst_lag_s, 0.0
        return worst if worst > _LATE_S else 0.0
