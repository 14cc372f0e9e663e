"""The served adapter: one process, one port, until it is told to end."""

import asyncio
import json
import os
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web

from harness.model.errors import ConfigError
from harness.simulator.adapter.limits import Gate, Limits
from harness.simulator.adapter.plants import Plants
from harness.simulator.adapter.rest import application

_LOOK_S = 1.0


@dataclass(frozen=True, slots=True)
class AdapterOptions:
    """How to serve. Port 0 is any free one; `ready_file` gets the first line of the output as soon as it answers."""

    limits: Limits = Limits()
    plants: int = 100
    step_s: float = 60.0
    seed: int = 0
    name: str = "plants"
    host: str = "127.0.0.1"
    port: int = 0
    ready_file: Path | None = None
    die_with_parent: bool = False


def serve(options: AdapterOptions) -> None:
    """Serve until SIGTERM, SIGINT, or the parent's end."""
    asyncio.run(_serve(options))


async def _serve(options: AdapterOptions) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    plants = Plants(options.plants, options.step_s, options.seed)
    app = application(plants, Gate(options.limits, options.seed), options.name)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, options.host, options.port, reuse_address=True, backlog=2048)
        try:
            await site.start()
        except OSError as error:
            message = f"the adapter can't listen on {options.host}:{options.port}: {error.strerror}"
            raise ConfigError(message, "give another --port; 0 takes any free one") from error
        _announce(options, f"http://{options.host}:{runner.addresses[0][1]}")
        parent = os.getppid()
        while not stop.is_set() and not (options.die_with_parent and os.getppid() != parent):
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), _LOOK_S)
    finally:
        await runner.cleanup()


def _announce(options: AdapterOptions, url: str) -> None:
    line = json.dumps({"url": url, "name": options.name, "pid": os.getpid()})
    print(line, flush=True)
    if options.ready_file is not None:
        options.ready_file.write_text(line + "\n")
    print(
        f"The adapter '{options.name}' answers at {url} until it is interrupted. The backend is told with\n"
        f'  export HETIDA_DESIGNER_ADAPTERS="{options.name}|{options.name}|{url}|{url}"',
        file=sys.stderr,
        flush=True,
    )
