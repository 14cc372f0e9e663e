"""What the servers of this package share: they listen, say where, and end when told to or with their parent."""

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
    """Where to listen. Port 0 is any free one; `ready_file` gets the first line of the output as soon as it answers."""

    host: str = "127.0.0.1"
    port: int = 0
    ready_file: Path | None = None
    die_with_parent: bool = False


@asynccontextmanager
async def listening(
    app: web.Application, listen: ListenOptions, name: str, *, patient: bool = True
) -> AsyncIterator[tuple[str, Callable[[], int]]]:
    """Serve the application, which is `name`'s; yields its address, and what counts the requests that came.

    Unless `patient`, a handler is cancelled as soon as its client hangs up.

    Raises:
        ConfigError: it can't listen there.
    """
    app.middlewares.append(_heard_out)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0, handler_cancellation=not patient)
    await runner.setup()
    try:
        site = web.TCPSite(runner, listen.host, listen.port, reuse_address=True, backlog=2048)
        try:
            await site.start()
        except OSError as error:
            message = f"{name} can't listen on {listen.host}:{listen.port}: {error.strerror}"
            raise ConfigError(message, "give another --port; 0 takes any free one") from error
        server = runner.server
        assert server is not None
        _let_go(server)
        yield f"http://{listen.host}:{runner.addresses[0][1]}", lambda: server.requests_count
    finally:
        await runner.cleanup()


@web.middleware
async def _heard_out(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    """A client that hung up needs no answer, and nobody has to hear of it."""
    try:
        return await handler(request)
    except ConnectionError:
        return web.Response()


def _let_go(server: web.Server) -> None:
    """Let closed connections be freed at once.

    asyncio's transports (up to Python 3.12) keep a method of their own, and with it themselves: a kilobyte each that
    only a search through all of the memory would find, which stops a large model for seconds.
    """
    told = server.connection_lost

    def lost(handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        getattr(handler.transport, "__dict__", {}).pop("_read_ready_cb", None)
        told(handler, exc)

    server.connection_lost = lost  # type: ignore[method-assign]  # aiohttp has no other place to hear of it


def announce(listen: ListenOptions, facts: Mapping[str, object]) -> None:
    """Print the facts as one line of JSON; a ready file appears with the whole line in it."""
    line = json.dumps({**facts, "pid": os.getpid()})
    print(line, flush=True)
    if listen.ready_file is not None:
        unfinished = listen.ready_file.with_name(f"{listen.ready_file.name}.{os.getpid()}")
        unfinished.write_text(line + "\n")
        unfinished.replace(listen.ready_file)


class StopSignal:
    """Becomes true with SIGTERM, SIGINT, or the end of the parent where that counts."""

    def __init__(self, listen: ListenOptions) -> None:
        self.event = asyncio.Event()
        self._parent = os.getppid() if listen.die_with_parent else None
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.event.set)

    def __bool__(self) -> bool:
        return self.event.is_set() or (self._parent is not None and os.getppid() != self._parent)
