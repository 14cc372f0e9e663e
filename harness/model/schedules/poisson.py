"""Arrivals of many independent sources."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar, Self

from harness.model.options import Option
from harness.model.schedules.schedule import FOR, RATE, Open, positive


@dataclass(frozen=True, slots=True)
class Poisson(Open):
    """A Poisson process: exponential gaps of mean 1 / rate, for `duration_s`."""

    OPTIONS: ClassVar[tuple[Option, ...]] = (RATE, FOR)
    SUMMARY: ClassVar[str] = "at random, as from many independent sources"

    rate: float
    duration_s: float
    name: str = "poisson"

    def __post_init__(self) -> None:
        positive(rate=self.rate, duration=self.duration_s)

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Self:
        """See `Kind.parse`."""
        return cls(values["rate"], values["for"])

    @property
    def length_s(self) -> float:
        """Its duration."""
        return self.duration_s

    def offsets(self, seed: int) -> Iterator[float]:
        """Gaps are summed: a Poisson process is defined by its gaps."""
        random = Random(seed)
        due_s = random.expovariate(self.rate)
        while due_s < self.duration_s:
            yield due_s
            due_s += random.expovariate(self.rate)
