"""The sources of capacity answers: run folders, and tables of observations."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.analysis.capacity.caps import Cap, widest
from harness.analysis.capacity.model import Observation
from harness.analysis.capacity.recorded import Recorded
from harness.model.errors import ConfigError
from harness.model.units import parse_duration
from harness.planning.summaries import summary_of
from harness.targets.table import named_rows_of, rows_of

_MAX_NAMED = 3  # folders of one warning
UNITS = ("node", "replica")  # what tests count; a table has the column "nodes" or "replicas"
_HINT = "give run folders, or a CSV table"
_MAX_NUMBER = 1e9


@dataclass(frozen=True, slots=True)
class Source:
    """What was read: observations to fit the model on, the recorded tests, warnings, and what is counted as nodes."""

    observations: tuple[Observation, ...]
    recorded: tuple[Recorded, ...]
    warnings: tuple[str, ...]
    unit: str = UNITS[0]

    @property
    def price(self) -> float | None:
        """The mean recorded price of a node per hour; none when a test has none."""
        prices = [r.price for r in self.recorded if r.price is not None]
        return sum(prices) / len(prices) if prices and len(prices) == len(self.recorded) else None

    @property
    def caps(self) -> tuple[Cap, ...]:
        """What the tests showed to be limited, however many nodes there are."""
        return widest(cap for test in self.recorded for cap in test.caps)

    @property
    def workers_each(self) -> int:
        """Worker processes of each replica; 0 where a test does not show them, or they differ."""
        found = {r.workers_each for r in self.recorded}
        return found.pop() if len(found) == 1 else 0

    @property
    def lacks(self) -> str:
        """The resource that nodes lacked most often; "" when unknown."""
        found = [r.lacks for r in self.recorded if r.lacks]
        return max(found, key=found.count) if found else ""


def read(paths: Iterable[Path]) -> Source:
    """Observations of run folders and tables.

    Raises:
        ConfigError: a source can't be read, or none of them has an observation.
    """
    observations: list[Observation] = []
    tests: list[Recorded] = []
    warnings: dict[str, list[str]] = {}  # folders by warning
    units = set()
    for path in paths:
        if path.is_dir():
            test = summary_of(path).capacity
            tests.append(test)
            observations.extend(test.observations)
            for warning in test.warnings:
                warnings.setdefault(warning, []).append(path.name)
            units.add(test.unit)
        else:
            observations.extend(read_observations(path))
            units.add(_unit(path))
    said = tuple(f"{_named(folders)}: {warning}" for warning, folders in warnings.items())
    if len(units) > 1:
        raise ConfigError("the sources count nodes and replicas", "give tests of one kind of platform")
    if not observations:
        raise ConfigError(
            "the sources contain no observation of capacity", "; ".join(said) or "give a burst's run folder"
        )
    return Source(tuple(observations), tuple(tests), said, *units)


def _named(folders: Sequence[str]) -> str:
    shown = ", ".join(folders[:_MAX_NAMED])
    return f"{shown} and {len(folders) - _MAX_NAMED:,} more" if len(folders) > _MAX_NAMED else shown


def read_observations(path: Path) -> list[Observation]:
    """A table with the columns runs, nodes or replicas, duration (seconds, or with a unit); others are ignored.

    Raises:
        ConfigError: the file is not such a table.
    """
    found = []
    columns = ("runs", f"{_unit(path)}s", "duration")
    for line, row in named_rows_of(path, columns, _HINT):
        runs, nodes, duration = (_positive(path, line, row, name) for name in columns)
        found.append(Observation(runs, nodes, duration))
    if not found:
        raise ConfigError(f"{path} has no rows", "give one row per test; three rows are enough to start")
    return found


def _unit(path: Path) -> str:
    """What a table counts, by its header."""
    _, header = next(rows_of(path, _HINT), (1, []))
    named = [unit for unit in UNITS if f"{unit}s" in {name.strip() for name in header}]
    return named[0] if named else UNITS[0]


def _positive(path: Path, line: int, row: dict[str, str], name: str) -> float:
    text = row[name]
    try:
        value = parse_duration(text) if name == "duration" else float(text)
    except (ValueError, ConfigError):
        value = 0.0
    if not 0 < value <= _MAX_NUMBER:
        expected = "a time above 0: 5400, 90m or 1h30m" if name == "duration" else "a number above 0"
        raise ConfigError(f"{path}, line {line}, column '{name}': '{text}' is not {expected}", "correct the row")
    return value
