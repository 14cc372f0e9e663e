"""Many arrivals at once."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, Self

from harness.model.errors import ConfigError
from harness.model.options import Option
from harness.model.schedules.schedule import RUNS, Open, positive
from harness.model.units import parse_duration


@dataclass(frozen=True, slots=True)
class Burst(Open):
    """`runs` arrivals at once, or evenly within `ramp_in_s`; with `every_s`, `times` such bursts."""

    OPTIONS = (
        RUNS,
        Option("every", "", "time between bursts", parse_duration),
        Option("times", "1", "number of bursts", int),
        Option("ramp-in", "", "time within which each burst is sent (default: at once)", parse_duration),
    )
    SUMMARY = "all at once, as an orchestrator does; may repeat"

    runs: int
    every_s: float = 0.0
    times: int = 1
    ramp_in_s: float = 0.0
    name: str = "burst"

    def __post_init__(self) -> None:
        positive(runs=self.runs, times=self.times)
        if self.times > 1:
            positive(every=self.every_s)
        if not 0 <= self.ramp_in_s <= (self.every_s or inf):
            raise ConfigError(f"the ramp-in is {self.ramp_in_s:g} s", "give at most the time between bursts")

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Self:
        """See `Kind.parse`."""
        runs, times = values["runs"], values.get("times")
        return cls(
            values["scenarios"] if runs is None else runs,
            values.get("every") or 0.0,
            1 if times is None else times,
            values.get("ramp-in") or 0.0,
        )

    @property
    def length_s(self) -> float:
        """A period for each burst; a single burst without a period takes its ramp-in."""
        return self.times * self.every_s or self.ramp_in_s

    def offsets(self, seed: int) -> Iterator[float]:  # noqa: ARG002  # nothing random in it
        """Without a ramp-in all arrivals of a burst are due at the same instant."""
        for k in range(self.times):
            for run in range(self.runs):
                yield k * self.every_s + run * self.ramp_in_s / self.runs
