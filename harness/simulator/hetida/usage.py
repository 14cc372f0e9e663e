"""The CPU that each replica of the runtime used, window by window, as metrics-server reports it."""

from collections.abc import Iterator

from harness.simulator.engine.events import EventLoop
from harness.simulator.hetida.service import Service

WINDOW_S = 15.0  # metrics-server's resolution by default


class ReplicaUsage:
    """Measures a service's replicas at the end of each window, for as long as the event loop runs."""

    def __init__(self, loop: EventLoop, service: Service, window_s: float = WINDOW_S) -> None:
        self._loop = loop
        self._service = service
        self._window_s = window_s
        self._before: dict[int, float] = {}
        self._samples: list[tuple[float, int, float]] = []
        loop.after(window_s, self._measure)

    def samples(self, until: float) -> Iterator[tuple[float, int, float]]:
        """(simulated seconds, index of the replica, cores used on average since the last sample)."""
        return (sample for sample in self._samples if sample[0] <= until + self._window_s)

    def _measure(self) -> None:
        now = self._loop.now
        for replica in self._service.replicas:
            used = replica.core_s - self._before.get(replica.index, 0.0)
            self._before[replica.index] = replica.core_s
            self._samples.append((now, replica.index, used / self._window_s))
        self._loop.after(self._window_s, self._measure)
