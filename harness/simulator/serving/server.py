"""Shared by all servers: listening, announcing the address, and stopping on a signal or with the parent process."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from harness.model.errors import ConfigError


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
