"""When arrivals are due. A schedule owns no clock: it is a sequence of offsets, so its tests are tables."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from math import sqrt
from random import Random
from typing import Any, Protocol

from harness.model.concurrency import Concurrency
from harness.model.errors import ConfigError
from harness.model.units import format_duration


class Schedule(Protocol):
    """A non-decreasing sequence of seconds after the test's start. The same seed gives the same sequence."""

    @property
    def name(self) -> str:
        """One word for folder names and reports."""
        ...

    @property
    def length_s(self) -> float:
        """When the next schedule may begin, if one follows."""
        ...

    def offsets(self, seed: int) -> Iterator[float]:
        """Due times of all arrivals, in seconds after t0, non-decreasing."""
        ...


def _positive(**values: float) -> None:
    for name, value in values.items():
        if not value > 0:
            raise ConfigError(f"'{name}' is {value:g}", "it has to be above 0")


class _Composing:
    """What every schedule can."""

    __slots__ = ()

    def then(self: "Schedule", following: "Schedule") -> "Stages":
        """This one, and `following` when it has had its length."""
        first, second = (each.parts if isinstance(each, Stages) else (each,) for each in (self, following))
        return Stages((*first, *second))


@dataclass(frozen=True, slots=True)
class Constant(_Composing):
    """`rate` arrivals a second, evenly, for `duration_s`: the k-th is due at k / rate."""

    rate: float
    duration_s: float
    name: str = "constant"

    def __post_init__(self) -> None:
        _positive(rate=self.rate, duration=self.duration_s)

    @property
    def length_s(self) -> float:
        """Its duration."""
        return self.duration_s

    def offsets(self, seed: int) -> Iterator[float]:  # noqa: ARG002  # nothing random in it
        """Multiplied, never summed: no drift however long the test."""
        # The tolerance keeps 0.1/s for 60 s at 6 arrivals although 0.1 * 60 rounds above 6.
        for k in range(int(self.rate * self.duration_s * (1 + 1e-12) + 1e-9)):
            yield k / self.rate


@dataclass(frozen=True, slots=True)
class Spread(_Composing):
    """`runs` arrivals evenly over `over_s`; `jitter` moves each by up to that share of the spacing."""

    runs: int
    over_s: float
    jitter: float = 0.0
    name: str = "spread"

    def __post_init__(self) -> None:
        _positive(runs=self.runs, over=self.over_s)
        if not 0 <= self.jitter <= 1:
            raise ConfigError(f"the jitter is {self.jitter:g}", "give a share between 0 and 1 of the spacing")

    @property
    def length_s(self) -> float:
        """The time it is spread over."""
        return self.over_s

    def offsets(self, seed: int) -> Iterator[float]:
        """Within its own slot of over_s / runs each arrival is moved later, so the order stays."""
        spacing = self.over_s / self.runs
        random = Random(seed)
        for k in range(self.runs):
            yield (k + (random.random() * self.jitter if self.jitter else 0.0)) * spacing


@dataclass(frozen=True, slots=True)
class Burst(_Composing):
    """`runs` arrivals at once, or evenly within `ramp_in_s`; with `every_s`, `times` such bursts."""

    runs: int
    every_s: float = 0.0
    times: int = 1
    ramp_in_s: float = 0.0
    name: str = "burst"

    def __post_init__(self) -> None:
        _positive(runs=self.runs, times=self.times)
        if self.times > 1:
            _positive(every=self.every_s)
        if not 0 <= self.ramp_in_s <= (self.every_s or float("inf")):
            raise ConfigError(f"the ramp-in is {self.ramp_in_s:g} s", "give a time from 0 to that between bursts")

    @property
    def length_s(self) -> float:
        """A period for each burst; a single burst without a period takes its ramp-in."""
        return self.times * self.every_s or self.ramp_in_s

    def offsets(self, seed: int) -> Iterator[float]:  # noqa: ARG002  # nothing random in it
        """Without a ramp-in all arrivals of a burst are due at the same instant."""
        for k in range(self.times):
            for run in range(self.runs):
                yield k * self.every_s + run * self.ramp_in_s / self.runs


@dataclass(frozen=True, slots=True)
class Poisson(_Composing):
    """Arrivals of many independent sources: exponential gaps of mean 1 / rate, for `duration_s`."""

    rate: float
    duration_s: float
    name: str = "poisson"

    def __post_init__(self) -> None:
        _positive(rate=self.rate, duration=self.duration_s)

    @property
    def length_s(self) -> float:
        """Its duration."""
        return self.duration_s

    def offsets(self, seed: int) -> Iterator[float]:
        """Gaps are summed: arrivals of a Poisson process are defined by their gaps."""
        random = Random(seed)
        due_s = random.expovariate(self.rate)
        while due_s < self.duration_s:
            yield due_s
            due_s += random.expovariate(self.rate)


@dataclass(frozen=True, slots=True)
class Ramp(_Composing):
    """The rate moves evenly from `start_rate` to `end_rate` within `duration_s`.

    By time t, N(t) = a t + (b - a) t² / 2d arrivals are due; the k-th comes when N(t) = k.
    """

    start_rate: float
    end_rate: float
    duration_s: float
    name: str = "ramp"

    def __post_init__(self) -> None:
        _positive(duration=self.duration_s)
        if min(self.start_rate, self.end_rate) < 0 or max(self.start_rate, self.end_rate) <= 0:
            raise ConfigError(
                f"the ramp goes from {self.start_rate:g} to {self.end_rate:g} arrivals a second",
                "give two rates of which none is below 0 and one is above",
            )

    @property
    def length_s(self) -> float:
        """Its duration."""
        return self.duration_s

    def offsets(self, seed: int) -> Iterator[float]:  # noqa: ARG002  # nothing random in it
        """The root of N(t) = k in the form that stays exact when the rate hardly changes."""
        a, slope = self.start_rate, (self.end_rate - self.start_rate) / self.duration_s
        total = (self.start_rate + self.end_rate) / 2 * self.duration_s
        for k in range(int(total * (1 + 1e-12) + 1e-9)):
            yield 2 * k / (a + sqrt(max(a * a + 2 * slope * k, 0.0))) if k else 0.0


@dataclass(frozen=True, slots=True)
class Replay(_Composing):
    """Due times as they were recorded or generated; `source` says where they come from.

    `scenarios` are the scenarios' ids by arrival, where the source names them; otherwise they are taken in turn.
    """

    due_s: tuple[float, ...]
    source: str = ""
    scenarios: tuple[str, ...] = ()
    name: str = "replay"

    def __post_init__(self) -> None:
        if not self.due_s:
            raise ConfigError("the schedule to replay holds no arrival", "give a file with a row for each arrival")
        if self.due_s[0] < 0 or any(b < a for a, b in zip(self.due_s, self.due_s[1:], strict=False)):
            raise ConfigError("the due times to replay go back in time", "sort the file by due_s, from 0 on")

    @property
    def length_s(self) -> float:
        """When the last arrival is due."""
        return self.due_s[-1]

    def offsets(self, seed: int) -> Iterator[float]:  # noqa: ARG002  # nothing random in it
        """The recorded due times."""
        yield from self.due_s


@dataclass(frozen=True, slots=True)
class Stages(_Composing):
    """Schedules one after the other; each begins when the one before it has had its length."""

    parts: tuple[Schedule, ...]
    name: str = "stages"

    def __post_init__(self) -> None:
        if not self.parts:
            raise ConfigError("there is no stage", "give at least one")

    @property
    def length_s(self) -> float:
        """The sum of its parts."""
        return sum(part.length_s for part in self.parts)

    def offsets(self, seed: int) -> Iterator[float]:
        """Each part is seeded by its place, so that equal parts differ."""
        begins_s = 0.0
        for place, part in enumerate(self.parts):
            for due_s in part.offsets(seed + place):
                yield begins_s + due_s
            begins_s += part.length_s


_KINDS: Mapping[str, type[Any]] = {
    "constant": Constant,
    "spread": Spread,
    "burst": Burst,
    "poisson": Poisson,
    "ramp": Ramp,
}


def to_mapping(schedule: Schedule | Concurrency) -> dict[str, object]:
    """A schedule as plain values for the manifest; of a replay only the source: its times lie in ``schedule.csv``."""
    if isinstance(schedule, Concurrency):
        return schedule.to_mapping()
    if isinstance(schedule, Replay):
        return {"name": schedule.name, "source": schedule.source}
    if isinstance(schedule, Stages):
        return {"name": schedule.name, "parts": [to_mapping(part) for part in schedule.parts]}
    return asdict(schedule)  # type: ignore[call-overload, no-any-return]  # every schedule is a dataclass


def in_words(values: Mapping[str, Any]) -> str:
    """A schedule's plain values for people: ``burst, runs 200``; "observed" where there is none."""
    if "parts" in values:
        return " then ".join(map(in_words, values["parts"]))
    # A length of 0 and a single round say nothing.
    said = {k: v for k, v in sorted(values.items()) if k != "name" and v and (k, v) != ("times", 1)}
    return ", ".join((str(values.get("name", "observed")), *(_said(key, value) for key, value in said.items())))


def _said(key: str, value: object) -> str:
    word = key.removesuffix("_s").replace("_", " ")
    if not isinstance(value, float):
        return f"{word} {value}"
    if key.endswith("_s"):
        return f"{word} {format_duration(value)}"
    return f"{word} {value:g}" + ("/s" if "rate" in key else "")


def from_mapping(values: Mapping[str, Any]) -> Schedule:
    """The schedule of a manifest; a replay is read from the run's ``schedule.csv`` instead.

    Raises:
        ConfigError: there is no such schedule, or its values are not its own.
    """
    try:
        if values["name"] == "stages":
            return Stages(tuple(from_mapping(part) for part in values["parts"]))
        schedule: Schedule = _KINDS[str(values["name"])](**values)
    except (KeyError, TypeError) as error:
        raise ConfigError(f"{dict(values)} is no schedule: {error}", "is the run of a newer version?") from error
    return schedule
