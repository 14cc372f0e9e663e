"""Arrivals of many independent sources."""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from harness.model.schedules.schedule import FOR, RATE, Lasting, positive


@dataclass(frozen=True, slots=True)
class Poisson(Lasting):
    """A Poisson process: exponential gaps of mean 1 / rate, for `duration_s`."""

    OPTIONS = (RATE, FOR)
    SUMMARY = "at random, as from many independent sources"

    rate: float
    duration_s: float
    name: str = "poisson"

    def __post_init__(self) -> None:
        positive(rate=self.rate, duration=self.duration_s)

    def offsets(self, seed: int) -> Iterator[float]:
        """Gaps are summed: a Poisson process is defined by its gaps."""
        random = Random(seed)
        due_s = random.expovariate(self.rate)
        while due_s < self.duration_s:
            yield due_s
            due_s += random.expovariate(self.rate)
