"""The served adapter: one process on one port."""

import asyncio
import sys
from contextlib import suppress

from harness.simulator.hetida.adapter.limits import Gate
from harness.simulator.hetida.adapter.plants import Plants
from harness.simulator.hetida.adapter.rest import application
from harness.simulator.serving.server import ListenOptions, StopSignal, announce, listening

_CHECK_S = 1.0  # interval for checking the parent process


def serve(plants: Plants, gate: Gate, name: str, listen: ListenOptions) -> None:
    """Serve until SIGTERM, SIGINT, or the end of the parent process if that counts; `name` is the adapter's id."""
    asyncio.run(_serve(plants, gate, name, listen))


async def _serve(plants: Plants, gate: Gate, name: str, listen: ListenOptions) -> None:
    stop = StopSignal(listen)
    async with listening(application(plants, gate, name), listen, "the adapter") as (url, _):
        announce(listen, {"url": url, "name": name})
        print(
            f"The adapter '{name}' is served at {url} until interrupted. Configure the backend with\n"
            f'  export HETIDA_DESIGNER_ADAPTERS="{name}|{name}|{url}|{url}"',
            file=sys.stderr,
            flush=True,
        )
        while not stop:
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.event.wait(), _CHECK_S)
