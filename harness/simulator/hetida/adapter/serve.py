"""The served adapter: one process on one port."""

import asyncio
import sys
from contextlib import suppress
from dataclasses import dataclass

from harness.simulator.hetida.adapter.limits import Gate, Limits
from harness.simulator.hetida.adapter.plants import Plants
from harness.simulator.hetida.adapter.rest import application
from harness.simulator.serving.server import ListenOptions, StopSignal, announce, listening

_CHECK_S = 1.0  # interval for checking the parent process


@dataclass(frozen=True, slots=True)
class AdapterOptions:
    """What to serve, and where."""

    limits: Limits = Limits()
    plants: int = 100
    step_s: float = 60.0
    seed: int = 0
    name: str = "plants"
    listen: ListenOptions = ListenOptions()


def serve(options: AdapterOptions) -> None:
    """Serve until SIGTERM, SIGINT, or the end of the parent process if that counts."""
    asyncio.run(_serve(options))


async def _serve(options: AdapterOptions) -> None:
    stop = StopSignal(options.listen)
    plants = Plants(options.plants, options.step_s, options.seed)
    app = application(plants, Gate(options.limits, options.seed), options.name)
    async with listening(app, options.listen, "the adapter") as (url, _):
        announce(options.listen, {"url": url, "name": options.name})
        print(
            f"The adapter '{options.name}' is served at {url} until interrupted. Configure the backend with\n"
            f'  export HETIDA_DESIGNER_ADAPTERS="{options.name}|{options.name}|{url}|{url}"',
            file=sys.stderr,
            flush=True,
        )
        while not stop:
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.event.wait(), _CHECK_S)
