"""The limits of an adapter: how many requests it serves at once, how long each takes, how many it fails."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random

from harness.simulator.engine.distributions import Amount, fixed
from harness.simulator.prometheus import Histogram

_NO_PARAMETERS: dict[str, object] = {}


@dataclass(frozen=True, slots=True)
class Limits:
    """What is planted: a capacity of 0 is no limit, `errors` is a share of the requests."""

    capacity: int = 0
    latency: Amount = fixed(0.0)
    errors: float = 0.0


class PlantedError(Exception):
    """This request is one of those that fail."""


class Gate:
    """Lets requests through within the limits, and counts what it did. Who finds no room waits in order of arrival."""

    def __init__(self, limits: Limits, seed: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._random = Random(f"{seed}/adapter")
        self._room = asyncio.Semaphore(limits.capacity) if limits.capacity else None
        self._clock = clock
        self.requests: Counter[tuple[str, str]] = Counter()  # by path and result
        self.durations = Histogram()
        self.serving = 0
        self.waiting = 0

    @asynccontextmanager
    async def request(self, path: str) -> AsyncIterator[None]:
        """One data request.

        Raises:
            PlantedError: it is one of those that fail; its time was taken all the same.
        """
        begun = self._clock()
        self.waiting += 1
        try:
            if self._room is not None:
                await self._room.acquire()
        finally:
            self.waiting -= 1
        self.serving += 1
        try:
            await asyncio.sleep(self._limits.latency.sample(self._random, _NO_PARAMETERS))
            if self._random.random() < self._limits.errors:
                self.requests[path, "planted error"] += 1
                raise PlantedError
            yield
            self.requests[path, "ok"] += 1
        finally:
            self.serving -= 1
            if self._room is not None:
                self._room.release()
            self.durations.observe(self._clock() - begun)

    def exposition(self) -> Iterable[str]:
        """Its counters, as Prometheus reads them."""
        yield "# TYPE pipeswarm_adapter_requests_total counter"
        for (path, result), count in sorted(self.requests.items()):
            yield f'pipeswarm_adapter_requests_total{{path="{path}",result="{result}"}} {count}'
        for name, value in (("serving", self.serving), ("waiting", self.waiting), ("capacity", self._limits.capacity)):
            yield f"# TYPE pipeswarm_adapter_{name} gauge"
            yield f"pipeswarm_adapter_{name} {value}"
        yield "# TYPE pipeswarm_adapter_request_seconds histogram"
        yield from self.durations.lines("pipeswarm_adapter_request_seconds", {})
