"""The limits of an adapter: concurrent requests, latency, and share of errors."""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random

from harness.model.live.exposition import Family, Histogram, written
from harness.simulator.engine.distributions import Amount, fixed

_NO_PARAMETERS: dict[str, object] = {}


@dataclass(frozen=True, slots=True)
class Limits:
    """A capacity of 0 is no limit; `errors` is a share of the requests."""

    capacity: int = 0
    latency: Amount = fixed(0.0)
    errors: float = 0.0


class InjectedError(Exception):
    """This request was chosen to fail."""


class Gate:
    """Admits requests within the limits, first come first served, and counts them."""

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
        """Admit one data request, for as long as the context lasts.

        Raises:
            InjectedError: the request was chosen to fail; it takes its time nevertheless.
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
                self.requests[path, "injected error"] += 1
                raise InjectedError
            yield
            self.requests[path, "ok"] += 1
        finally:
            self.serving -= 1
            if self._room is not None:
                self._room.release()
            self.durations.observe(self._clock() - begun)

    def metrics(self) -> str:
        """The counters as Prometheus scrapes them."""
        prefix = "pipeswarm_adapter_"
        results = [({"path": path, "result": result}, n) for (path, result), n in sorted(self.requests.items())]
        families: list[Family] = [
            (f"{prefix}requests_total", "counter", "Data requests by path and result.", results),
            (f"{prefix}serving", "gauge", "Requests being served.", [({}, self.serving)]),
            (f"{prefix}waiting", "gauge", "Requests waiting for capacity.", [({}, self.waiting)]),
            (f"{prefix}capacity", "gauge", "Requests served at once; 0 is no limit.", [({}, self._limits.capacity)]),
            (f"{prefix}request_seconds", "histogram", "Request durations, waiting included.", [({}, self.durations)]),
        ]
        return written(families)
