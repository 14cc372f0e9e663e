"""The schedule: the rate rises from 0 to a peak, drops back, and rises again."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt

from pipeswarm import ConfigError, OpenSchedule, Option, parse_duration, parse_rate


@dataclass(frozen=True, slots=True)
class Sawtooth(OpenSchedule):
    """`times` teeth of `period_s` seconds; each rises evenly to `peak` arrivals a second."""

    OPTIONS = (
        Option("peak", "2/s", "arrival rate at the end of a tooth", parse_rate),
        Option("period", "1m", "length of a tooth", parse_duration),
        Option("teeth", "1", "number of teeth", int),
    )
    SUMMARY = "the rate rises to a peak, drops back, and rises again"

    peak: float
    period_s: float
    times: int = 1
    name: str = "sawtooth"

    def __post_init__(self) -> None:
        if min(self.peak, self.period_s, self.times) <= 0:
            raise ConfigError("a sawtooth needs a peak, a period and a number of teeth", "give values above 0")

    @property
    def length_s(self) -> float:
        """When the next schedule may begin."""
        return self.times * self.period_s

    def offsets(self, seed: int) -> Iterator[float]:
        """By time t of a tooth peak t² / 2 period arrivals are due; the k-th comes when that is k."""
        for tooth in range(self.times):
            for k in range(int(self.peak * self.period_s / 2)):
                yield tooth * self.period_s + sqrt(2 * k * self.period_s / self.peak)
