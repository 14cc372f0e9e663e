"""Arrivals at a rate that changes linearly."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import sqrt
from typing import Any, Self

from harness.model.errors import ConfigError
from harness.model.options import Option
from harness.model.schedules.schedule import FOR, Lasting, positive
from harness.model.units import parse_rate


def _parse_rates(text: str) -> tuple[float, float]:
    start, _, end = text.partition("..")
    if not end:
        raise ConfigError(f"'{text}' is not a ramp", "write two rates, as 1/s..10/s")
    return parse_rate(start), parse_rate(end)


@dataclass(frozen=True, slots=True)
class Ramp(Lasting):
    """The rate changes linearly from `start_rate` to `end_rate` within `duration_s`.

    By time t, N(t) = a t + (b - a) t² / 2d arrivals are due; the k-th comes when N(t) = k.
    """

    OPTIONS = (Option("rate", "1/s", "first and last arrival rate, as 1/s..10/s", _parse_rates), FOR)
    SUMMARY = "at a rate that rises or falls linearly"

    start_rate: float
    end_rate: float
    duration_s: float
    name: str = "ramp"

    def __post_init__(self) -> None:
        positive(duration=self.duration_s)
        if min(self.start_rate, self.end_rate) < 0 or max(self.start_rate, self.end_rate) <= 0:
            raise ConfigError(
                f"the ramp goes from {self.start_rate:g} to {self.end_rate:g} arrivals a second",
                "give two rates from 0 on, at least one of them above 0",
            )

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Self:
        """See `Kind.parse`."""
        start_rate, end_rate = values["rate"]
        return cls(start_rate, end_rate, values["for"])

    def offsets(self, seed: int) -> Iterator[float]:  # noqa: ARG002  # nothing random in it
        """The root of N(t) = k in the form that stays exact when the rate hardly changes."""
        a, slope = self.start_rate, (self.end_rate - self.start_rate) / self.duration_s
        total = (self.start_rate + self.end_rate) / 2 * self.duration_s
        for k in range(int(total * (1 + 1e-12) + 1e-9)):
            yield 2 * k / (a + sqrt(max(a * a + 2 * slope * k, 0.0))) if k else 0.0
