"""The sources of capacity answers: run folders, and tables of observations."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from harness.model.errors import ConfigError
from harness.model.units import parse_duration
from harness.targets.table import named_rows_of

if TYPE_CHECKING:
    from harness.analysis.capacity.caps import Cap
    from harness.analysis.capacity.model import Observation
    from harness.analysis.capacity.recorded import Recorded
    from harness.analysis.timeline import Timeline

COLUMNS = ("runs", "nodes", "duration")
_MOST = 1e9


def timeline_of(path: Path) -> "Timeline":
    """The timeline of a run folder.

    Raises:
        ConfigError: there is none at `path`.
    """
    from harness.analysis.timeline import Timeline
    from harness.store.folder import RunFolder
    from harness.store.tables import load

    folder = RunFolder.open(path)
    return Timeline.from_frames(folder.read_plan(), load(folder))


@dataclass(frozen=True, slots=True)
class Source:
    """What was read: observations to fit the model on, the recorded tests, and warnings."""

    observations: "tuple[Observation, ...]"
    recorded: "tuple[Recorded, ...]"
    warnings: tuple[str, ...]

    @property
    def price(self) -> float | None:
        """The mean recorded price of a node per hour; none when a test has none."""
        prices = [r.price for r in self.recorded if r.price is not None]
        return sum(prices) / len(prices) if prices and len(prices) == len(self.recorded) else None

    @property
    def caps(self) -> "tuple[Cap, ...]":
        """What the tests showed to be limited, however many nodes there are."""
        from harness.analysis.capacity.caps import widest

        return widest(cap for test in self.recorded for cap in test.caps)

    @property
    def unit(self) -> str:
        """What the observations count as nodes."""
        return "replica" if self.recorded and all(r.unit == "replica" for r in self.recorded) else "node"

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
    from harness.planning.summaries import summary_of

    observations: list[Observation] = []
    tests: list[Recorded] = []
    warnings: list[str] = []
    for path in paths:
        if path.is_dir():
            test = summary_of(path).capacity
            tests.append(test)
            observations.extend(test.observations)
            warnings.extend(f"{path.name}: {warning}" for warning in test.warnings)
        else:
            observations.extend(read_observations(path))
    if len({test.unit for test in tests}) > 1:
        raise ConfigError("the sources count nodes and replicas", "give tests of one kind of platform")
    if not observations:
        raise ConfigError(
            "the sources contain no observation of capacity", "; ".join(warnings) or "give a burst's run folder"
        )
    return Source(tuple(observations), tuple(tests), tuple(warnings))


def read_observations(path: Path) -> "list[Observation]":
    """A table with the columns runs,nodes,duration (seconds, or with a unit); other columns are ignored.

    Raises:
        ConfigError: the file is not such a table.
    """
    from harness.analysis.capacity.model import Observation

    found = []
    for line, row in named_rows_of(path, COLUMNS, "give run folders, or a CSV table"):
        runs, nodes, duration = (_positive(path, line, row, name) for name in COLUMNS)
        found.append(Observation(runs, nodes, duration))
    if not found:
        raise ConfigError(f"{path} has no rows", "give one row per test; three rows are enough to start")
    return found


def _positive(path: Path, line: int, row: dict[str, str], name: str) -> float:
    text = row[name]
    try:
        value = parse_duration(text) if name == "duration" else float(text)
    except (ValueError, ConfigError):
        value = 0.0
    if not 0 < value <= _MOST:
        expected = "a time above 0: 5400, 90m or 1h30m" if name == "duration" else "a number above 0"
        raise ConfigError(f"{path}, line {line}, column '{name}': '{text}' is not {expected}", "correct the row")
    return value
