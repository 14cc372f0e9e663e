"""Arrivals at a constant rate."""

from collections.abc import Iterator
from dataclasses import dataclass

from harness.model.schedules.schedule import FOR, RATE, Lasting, positive


@dataclass(frozen=True, slots=True)
class Constant(Lasting):
    """`rate` arrivals a second, evenly spaced, for `duration_s`: the k-th is due at k / rate."""

    OPTIONS = (RATE, FOR)
    SUMMARY = "evenly spaced, at a rate"

    rate: float
    duration_s: float
    name: str = "constant"

    def __post_init__(self) -> None:
        positive(rate=self.rate, duration=self.duration_s)

    def offsets(self, seed: int) -> Iterator[float]:  # noqa: ARG002  # nothing random in it
        """Multiplied, never summed: no drift however long the test."""
        # The tolerance keeps 0.1/s for 60 s at 6 arrivals although 0.1 * 60 rounds above 6.
        for k in range(int(self.rate * self.duration_s * (1 + 1e-12) + 1e-9)):
            yield k / self.rate
