"""The closed model: a number of runs is kept in flight, and an arrival is due when one of them has ended."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, Self

from harness.model.errors import ConfigError
from harness.model.options import Option
from harness.model.schedules.schedule import MOST_ARRIVALS, Document
from harness.model.units import parse_duration


@dataclass(frozen=True, slots=True)
class Level:
    """`users` runs in flight for `for_s` seconds; None is to the end of the test."""

    users: int
    for_s: float | None = None


@dataclass(frozen=True, slots=True)
class Concurrency:
    """Keeps runs in flight, level after level; a level is approached at `spawn_rate` runs a second.

    Or in `stages`, instead of levels: a number of runs at once, the next stage when all runs of the former are over.

    It ends when `runs` arrivals have been due, or with its last level. It knows no due times in advance: the platform
    decides when a slot gets free, so a slow platform is asked less than an open schedule would ask it.
    """

    OPTIONS = (
        Option("runs", "", "number of runs (default: --for decides)", int),
        Option("for", "1m", "duration", parse_duration),
        Option(
            "schedule-file",
            "",
            "YAML list of levels, as {users: 20, for: 10m}, or of stages, as {runs: 5}",
            file="yaml",
        ),
    )
    SUMMARY = "closed model: as many runs in flight as users (-u), reached at -r per second"

    levels: tuple[Level, ...]
    spawn_rate: float = 1.0
    runs: int | None = None
    stages: tuple[int, ...] = ()
    name: str = "concurrency"

    def __post_init__(self) -> None:
        if self.stages:
            self._check_stages()
            return
        if not self.levels or any(level.users < 0 for level in self.levels) or not self.most_in_flight:
            raise ConfigError("no run would be in flight", "give a number of users above 0, as -u 10")
        if self.most_in_flight > MOST_ARRIVALS:
            raise ConfigError(f"{self.most_in_flight:,} runs would be in flight", f"give at most {MOST_ARRIVALS:,}")
        if not self.spawn_rate > 0:
            raise ConfigError(f"the spawn rate is {self.spawn_rate:g}", "give a rate above 0, as -r 2")
        if self.runs is not None and self.runs < 1:
            raise ConfigError(f"the number of runs is {self.runs}", "give a number above 0")
        times = [level.for_s for level in (self.levels if self.runs is None else self.levels[:-1])]
        if any(not time or time < 0 for time in times):
            raise ConfigError("the levels have no end", "give runs, or a time above 0 for each level")

    def _check_stages(self) -> None:
        if self.levels or any(runs < 1 for runs in self.stages):
            raise ConfigError("a stage has no runs", "give each a number of runs above 0, as {runs: 5}")
        if sum(self.stages) > MOST_ARRIVALS:
            raise ConfigError(f"the stages have {sum(self.stages):,} runs", f"give at most {MOST_ARRIVALS:,}")

    @classmethod
    def parse(cls, values: Mapping[str, Any]) -> Self:
        """See `Kind.parse`; each item of the document is a level."""
        runs, document = values["runs"], values["schedule-file"]
        if document is not None and (stages := _stages(document)):
            return cls((), values["spawn-rate"], sum(stages), stages)
        levels = (Level(values["users"], None if runs else values["for"]),) if document is None else _levels(document)
        return cls(levels, values["spawn-rate"], runs)

    @property
    def most_in_flight(self) -> int:
        """Runs in flight at the highest level."""
        return max(self.stages or (level.users for level in self.levels))

    @property
    def length_s(self) -> float:
        """When no more arrivals become due; infinite where `runs` alone ends it."""
        return inf if self.stages else sum(inf if level.for_s is None else level.for_s for level in self.levels)

    def changes(self) -> Iterator[tuple[float, int]]:
        """When a slot is added (1) or taken away (-1): (seconds after t0, change), in order."""
        begins_s, users = 0.0, 0
        for level in self.levels:
            step = 1 if level.users > users else -1
            length_s = inf if level.for_s is None else level.for_s
            for k in range(abs(level.users - users)):
                after_s = k / self.spawn_rate
                if after_s >= length_s:
                    break
                users += step
                yield begins_s + after_s, step
            begins_s += length_s

    def to_mapping(self) -> dict[str, object]:
        """As plain values for the manifest."""
        if self.stages:
            return {"name": self.name, "model": "closed", "runs": self.runs, "stages": list(self.stages)}
        levels: list[dict[str, object]] = [
            {"users": level.users} | ({"for_s": level.for_s} if level.for_s is not None else {})
            for level in self.levels
        ]
        named = {"name": self.name, "model": "closed", "spawn_rate": self.spawn_rate, "runs": self.runs}
        return named | (levels[0] if len(levels) == 1 else {"levels": levels})

    @classmethod
    def from_mapping(cls, values: Mapping[str, Any]) -> Self:
        """The schedule of these plain values."""
        if stages := tuple(values.get("stages") or ()):
            return cls((), runs=values["runs"], stages=stages)
        levels = values.get("levels") or [values]
        return cls(
            tuple(Level(level["users"], level.get("for_s")) for level in levels), values["spawn_rate"], values["runs"]
        )


def _levels(document: Document) -> tuple[Level, ...]:
    if not isinstance(document.content, list) or not document.content:
        raise ConfigError(f"{document.source} is not a list of levels", "begin each with '- users: …'")
    places = (f"{document.source}, level {number}" for number in range(1, len(document.content) + 1))
    return tuple(map(_level, places, document.content))


def _stages(document: Document) -> tuple[int, ...]:
    """The numbers of runs of a list of stages; none if the document does not begin with a stage.

    Raises:
        ConfigError: it goes on with something else.
    """
    items = document.content
    if not isinstance(items, list) or not items or not isinstance(items[0], dict) or "runs" not in items[0]:
        return ()
    for number, each in enumerate(items, 1):
        if not isinstance(each, dict) or set(each) != {"runs"} or type(each["runs"]) is not int:
            raise ConfigError(f"{document.source}, stage {number}: it is not a stage", "write each as {runs: 5}")
    return tuple(item["runs"] for item in items)


def _level(where: str, raw: Any) -> Level:
    if not isinstance(raw, dict) or "users" not in raw or set(raw) - {"users", "for"}:
        raise ConfigError(f"{where}: it is not a level", "write it as {users: 20, for: 10m}")
    try:
        return Level(int(str(raw["users"])), parse_duration(raw["for"]) if "for" in raw else None)
    except ConfigError as error:
        raise ConfigError(f"{where}: {error.message}", error.hint) from error
    except ValueError:
        raise ConfigError(f"{where}: '{raw['users']}' is not a whole number", "write it in digits") from None
