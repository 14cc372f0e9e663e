"""A number of arrivals, spread evenly over a time."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Self

from harness.model.errors import ConfigError
from harness.model.options import Option
from harness.model.schedules.schedule import RUNS, Open, positive
from harness.model.units import parse_duration


@dataclass(frozen=True, slots=True)
class Spread(Open):
    """`runs` arrivals evenly over `over_s`; `jitter` delays each by up to that share of the spacing."""

    OPTIONS = (
        RUNS,
        Option("over", "1m", "time over which the runs are spread evenly", parse_duration),
        Option("jitter", "0", "delays each arrival by up to this share of the spacing", float),
    )
    SUMMARY = "a number of runs, evenly over a time"

    runs: int
    over_s: float
    jitter: float = 0.0
    name: str = "spread"

    def __post_init__(self) -> None:
        positive(runs=self.runs, over=self.over_s)
        if not 0 <= self.jitter <= 1:
            raise ConfigError(f"the jitter is {self.jitter:g}", "give a share of the spacing, from 0 to 1")

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Self:
        """See `Kind.parse`."""
        runs = values["runs"]
        return cls(values["scenarios"] if runs is None else runs, values["over"], values.get("jitter") or 0.0)

    @property
    def length_s(self) -> float:
        """The time it is spread over."""
        return self.over_s

    def offsets(self, seed: int) -> Iterator[float]:
        """Each arrival moves later within its own slot of over_s / runs, so the order stays."""
        spacing = self.over_s / self.runs
        random = Random(seed)
        for k in range(self.runs):
            yield (k + (random.random() * self.jitter if self.jitter else 0.0)) * spacing
