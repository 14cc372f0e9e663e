"""What a schedule is, which kinds there are, and their form in a manifest.

A schedule owns no clock: it is a sequence of offsets, so its tests are tables. Each kind is one module of this package
(or an entry point of ``pipeswarm.schedules``): a frozen dataclass with its options and its parser.
"""

import importlib
import pkgutil
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from importlib.metadata import entry_points
from itertools import islice
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, cast

from harness.model.errors import ConfigError
from harness.model.options import Option
from harness.model.units import format_duration, parse_duration, parse_rate

if TYPE_CHECKING:
    from harness.model.schedules.concurrency import Concurrency
    from harness.model.schedules.stages import Stages

DEFAULT = "spread"
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


class Kind(Protocol):
    """What the class of a schedule offers, beside what its instances are."""

    OPTIONS: ClassVar[tuple[Option, ...]]  # what it reads; the same words describe it as a stage
    SUMMARY: ClassVar[str]  # its arrivals in a phrase

    def parse(self, values: Mapping[str, Any]) -> "Schedule | Concurrency":
        """The schedule of its options' values.

        Beside them stand "scenarios" (their number), and Locust's "users" and "spawn-rate". An option with `file` has a
        `Document` as its value.

        Raises:
            ConfigError: the values make no schedule.
            KeyError: a value that it needs is missing, as it may be in a stage.
        """
        ...

    def from_mapping(self, values: Mapping[str, Any]) -> "Schedule | Concurrency":
        """The schedule that `to_mapping` gave `values` for."""
        ...


@dataclass(frozen=True, slots=True)
class Document:
    """A file as it was read: `content` is what its YAML says, or (line, row) pairs of a CSV; `source` names it."""

    source: str
    content: Any


class OpenSchedule:
    """Mixin of open schedules: parser, composition, and the form in a manifest."""

    __slots__ = ()
    OPTIONS: ClassVar[tuple[Option, ...]]

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Self:
        """See `Kind.parse`; unless overridden, the options are the first fields, in their order."""
        return cls(*(values[option.name] for option in cls.OPTIONS))

    def then(self: "Schedule", following: "Schedule") -> "Stages":
        """This schedule, followed by `following` when its length is over."""
        from harness.model.schedules.stages import Stages

        first, second = (each.parts if isinstance(each, Stages) else (each,) for each in (self, following))
        return Stages((*first, *second))

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


# --- kinds ------------------------------------------------------------------------------------------------------------


@cache
def kinds() -> Mapping[str, Kind]:
    """The kinds of schedules by name: the default, then the other built-in ones, then third parties'."""
    package = importlib.import_module(__package__)
    modules = [importlib.import_module(f"{__package__}.{m.name}") for m in pkgutil.iter_modules(package.__path__)]
    found = {
        module.__name__.rpartition(".")[2]: cast("Kind", each)
        for module in modules
        for each in vars(module).values()
        if isinstance(each, type) and each.__module__ == module.__name__ and hasattr(each, "SUMMARY")
    }
    found |= {entry.name: cast("Kind", entry.load()) for entry in entry_points(group="pipeswarm.schedules")}
    return dict(sorted(found.items(), key=lambda each: each[0] != DEFAULT))


def find_kind(name: object) -> Kind:
    """The kind called `name`.

    Raises:
        ConfigError: there is none.
    """
    try:
        return kinds()[str(name)]
    except KeyError:
        raise ConfigError(f"there is no schedule '{name}'", f"schedules: {', '.join(kinds())}") from None


def schedule_options() -> tuple[Option, ...]:
    """The options of all kinds, each once; its help says which kinds read it."""
    helps: dict[str, dict[str, list[str]]] = {}  # option → help → kinds
    first: dict[str, Option] = {}
    for name, kind in kinds().items():
        for option in kind.OPTIONS:
            first.setdefault(option.name, option)
            helps.setdefault(option.name, {}).setdefault(option.help, []).append(name)
    return tuple(
        replace(option, help=" · ".join(f"{', '.join(names)}: {text}" for text, names in helps[option.name].items()))
        for option in first.values()
    )


# --- in manifests -----------------------------------------------------------------------------------------------------


def to_mapping(schedule: "Schedule | Concurrency") -> dict[str, object]:
    """A schedule as plain values for the manifest; of a replay only the source: its times lie in ``schedule.csv``."""
    return cast("OpenSchedule", schedule).to_mapping()


def from_mapping(values: Mapping[str, Any]) -> "Schedule | Concurrency":
    """The schedule of a manifest.

    Raises:
        ConfigError: there is no such schedule, the values are not its own, or it is a replay.
    """
    try:
        return find_kind(values["name"]).from_mapping(values)
    except (KeyError, TypeError) as error:
        raise ConfigError(
            f"{dict(values)} is not a schedule: {error}", "was the run made by a newer version?"
        ) from error


def in_words(values: Mapping[str, Any]) -> str:
    """A schedule's plain values for people: ``burst, runs 200``; "observed" where there is none."""
    if isinstance(values.get("parts"), list):
        return " then ".join(map(in_words, values["parts"]))
    # A length of 0 and a single burst go without saying.
    shown = {k: v for k, v in sorted(values.items()) if k != "name" and v and (k, v) != ("times", 1)}
    return ", ".join((str(values.get("name", "observed")), *(_in_words(key, value) for key, value in shown.items())))


def _in_words(key: str, value: object) -> str:
    word = key.removesuffix("_s").replace("_", " ")
    if not isinstance(value, float):
        return f"{word} {value}"
    if key.endswith("_s"):
        return f"{word} {format_duration(value)}"
    return f"{word} {value:g}" + ("/s" if "rate" in key else "")
