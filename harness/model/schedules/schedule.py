"""What a schedule is: a sequence of offsets. It owns no clock, so its tests are tables."""

from array import array
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any, ClassVar, Protocol, Self

from harness.model.errors import ConfigError
from harness.model.options import Option
from harness.model.units import parse_duration, parse_rate

MOST_ARRIVALS = 10_000_000  # of one test
_LONGEST_S = 1e9
RATE = Option("rate", "1/s", "arrival rate, as 2/s, 120/m or 500/h", parse_rate)
FOR = Option("for", "1m", "duration", parse_duration)
RUNS = Option("runs", "", "number of runs (default: one per scenario, or 60)", int)


class Schedule(Protocol):
    """An open schedule: non-decreasing seconds after the test's start. The same seed gives the same sequence."""

    @property
    def name(self) -> str:
        """Its kind: one word for folder names and reports."""
        ...

    @property
    def length_s(self) -> float:
        """When the next schedule may begin, if one follows."""
        ...

    def offsets(self, seed: int) -> Iterator[float]:
        """Due times of all arrivals, in seconds after t0, non-decreasing."""
        ...


@dataclass(frozen=True, slots=True)
class Document:
    """A file as it was read: `content` is what its YAML says, or (line, row) pairs of a CSV; `source` names it."""

    source: str
    content: Any


class OpenSchedule:
    """Mixin of open schedules: the parser, and the form in a manifest."""

    __slots__ = ()
    OPTIONS: ClassVar[tuple[Option, ...]]

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Self:
        """See `kinds.Kind.parse`; unless overridden, the options are the first fields, in their order."""
        return cls(*(values[option.name] for option in cls.OPTIONS))

    def to_mapping(self) -> dict[str, object]:
        """The schedule as plain values, from which `from_mapping` restores it."""
        return asdict(self)  # type: ignore[call-overload, no-any-return]  # every schedule is a dataclass

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Self:
        """The schedule of these plain values."""
        return cls(**values)


class Lasting(OpenSchedule):
    """Mixin of open schedules whose length is a field."""

    __slots__ = ()
    duration_s: float

    @property
    def length_s(self) -> float:
        """Its duration in seconds: the next schedule may begin then."""
        return self.duration_s


def positive(**values: float) -> None:
    """Demand values above 0.

    Raises:
        ConfigError: naming the first that is not.
    """
    for name, value in values.items():
        if not value > 0:
            raise ConfigError(f"'{name}' is {value:g}", "it must be above 0")


def due_times(schedule: Schedule, seed: int) -> "array[float]":
    """All due times of a schedule, in seconds after t0.

    Raises:
        ConfigError: there are more than ten million, or one is later than in 30 years.
    """
    too_many = ConfigError(f"the schedule has more than {MOST_ARRIVALS:,} arrivals", "give fewer runs, or a lower rate")
    try:
        found = array("d", islice(schedule.offsets(seed), MOST_ARRIVALS + 1))
    except OverflowError:  # their number is infinite
        raise too_many from None
    if len(found) > MOST_ARRIVALS:
        raise too_many
    if found and not 0 <= found[-1] <= _LONGEST_S:
        raise ConfigError(f"its last arrival is due after {found[-1]:g} s", "give a shorter time")
    return found
