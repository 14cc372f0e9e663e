"""The closed model: so many runs are kept in flight, and an arrival is due when one of them has ended."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import inf

from harness.model.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Level:
    """`users` runs in flight for `for_s` seconds; to the end of the test where that is none."""

    users: int
    for_s: float | None = None


@dataclass(frozen=True, slots=True)
class Concurrency:
    """Keeps runs in flight, level after level; a level is approached at `spawn_rate` runs a second.

    It ends when `runs` arrivals have been due, or with its last level. It has no due times of its own: when a slot gets
    free is the platform's doing, so a slow platform is asked less. The open schedules do not do it that favour.
    """

    levels: tuple[Level, ...]
    spawn_rate: float = 1.0
    runs: int | None = None
    name: str = "concurrency"

    def __post_init__(self) -> None:
        if not self.levels or any(level.users < 0 for level in self.levels) or not self.most_in_flight:
            raise ConfigError("nothing is to be kept in flight", "give a number of users above 0, as -u 10")
        if not self.spawn_rate > 0:
            raise ConfigError(f"the spawn rate is {self.spawn_rate:g}", "give a rate above 0, as -r 2")
        if self.runs is not None and self.runs < 1:
            raise ConfigError(f"the number of runs is {self.runs}", "give a number above 0")
        times = [level.for_s for level in (self.levels if self.runs is None else self.levels[:-1])]
        if any(not time or time < 0 for time in times):
            raise ConfigError("the levels have no end", "give runs, or a time above 0 for each level")

    @property
    def most_in_flight(self) -> int:
        """The highest level."""
        return max(level.users for level in self.levels)

    @property
    def length_s(self) -> float:
        """When no arrival is due any more; infinite where `runs` alone ends it."""
        return sum(inf if level.for_s is None else level.for_s for level in self.levels)

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
        levels: list[dict[str, object]] = [
            {"users": level.users} | ({"for_s": level.for_s} if level.for_s is not None else {})
            for level in self.levels
        ]
        named = {"name": self.name, "model": "closed", "spawn_rate": self.spawn_rate, "runs": self.runs}
        return named | (levels[0] if len(levels) == 1 else {"levels": levels})
