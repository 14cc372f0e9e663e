"""Answers to capacity questions from recorded tests: reads them, fits the model, and asks it or a simulator.

The sources are run folders, and tables of observations.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from harness.analysis.capacity.answer import Answered, Question, answer
from harness.analysis.capacity.caps import Cap, widest
from harness.analysis.capacity.fit import fit, leave_one_out
from harness.analysis.capacity.model import Observation
from harness.analysis.capacity.next_test import next_test
from harness.analysis.capacity.recorded import Recorded, eviction_factor
from harness.model.errors import ConfigError
from harness.model.units import format_duration, parse_duration
from harness.planning.identify import identify, recorded_test
from harness.planning.simulated_capacity import CalibratedSimulator
from harness.planning.summaries import summary_of
from harness.planning.sweeps import DaskWorkers, Workers
from harness.planning.timelines import timeline_of
from harness.simulator.profile.file import load_profile
from harness.store.folder import RunFolder
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


_SEED = 7
_GRID = (0.5, 1.0, 1.5, 2.0)
_MOST_CELLS = 400


@dataclass(frozen=True, slots=True)
class Evictions:
    """Spot nodes that are taken back.

    Attributes:
        rate: evictions of one node per hour.
        step_s: length of the longest step, which an eviction repeats; none is that of the recorded tests.
        replacement_s: until a new node is ready.
    """

    rate: float
    step_s: float | None
    replacement_s: float


def answer_from(
    sources: Sequence[Path],
    question: Mapping[str, Sequence[float]],
    *,
    grid: bool = False,
    jobs_per_node: int | None = None,
    simulator: str = "",
    price: float | None = None,
    evictions: Evictions | None = None,
    propose: bool = False,
    workers: Workers | DaskWorkers | None = None,
) -> Answered:
    """Answer a question, from run folders and tables.

    Args:
        sources: run folders and tables of observations.
        question: two of ``runs``, ``within_s`` and ``nodes``, with one value or several; several make a grid.
        grid: answer around a single size, too.
        jobs_per_node: runs that fit one node, where known.
        simulator: the profile of a simulated platform that answers instead of the fitted model.
        price: of one node, per hour; none is the recorded price.
        evictions: none for nodes that stay.
        propose: say which test to run next.
        workers: what the simulator runs on, also when its answers are plotted; none is this process.

    Raises:
        ConfigError: the sources or the options can't answer it.
    """
    cells = _cells(question, grid=grid)
    source = read(sources)
    model = fit(
        source.observations, np.random.default_rng(_SEED),
        jobs_per_node=jobs_per_node, caps=source.caps, unit=source.unit,
    )  # fmt: skip
    warnings = source.warnings
    if evictions:
        factor, warning = _eviction_factor(evictions, source)
        model, warnings = model.scaled(factor), (*warnings, warning)
    if simulator and evictions:
        raise ConfigError("--simulator has its own evictions", "give a profile with spot nodes instead of --spot")
    ask = _simulator(sources, simulator, workers or Workers(1)).ask if simulator else None
    first = answer(model, Question(**{quantity: values[0] for quantity, values in question.items()}), ask)
    largest = model.fitted_on
    return Answered(
        model,
        f"calibrated simulator ({simulator})" if ask else model.law.name,
        first,
        tuple(answer(model, Question(**cell), ask) for cell in cells),
        source.observations,
        source.lacks,
        warnings,
        source.price if price is None else price,
        None if ask else leave_one_out(source.observations, np.random.default_rng(_SEED)),
        ask,
        next_test(model, first.runs or largest.runs[1], first.nodes or largest.nodes[1]) if propose else None,
        source.workers_each,
    )


def _cells(question: Mapping[str, Sequence[float]], *, grid: bool) -> list[dict[str, float]]:
    """The combinations of the grid; empty when none is asked for."""
    if not grid and all(len(values) == 1 for values in question.values()):
        return []
    axes = {name: _axis(name, values) for name, values in question.items()}
    cells = [dict(zip(axes, point, strict=True)) for point in product(*axes.values())]
    if len(cells) > _MOST_CELLS:
        raise ConfigError(f"the grid has {len(cells)} cells, the limit is {_MOST_CELLS}", "give shorter lists")
    return cells


def _axis(name: str, values: Sequence[float]) -> list[float]:
    if len(values) > 1:
        return list(values)
    spread = [values[0] * factor for factor in _GRID]
    return spread if name == "within_s" else sorted({float(max(1, round(value))) for value in spread})


def _simulator(sources: Sequence[Path], profile: str, workers: Workers | DaskWorkers) -> CalibratedSimulator:
    """The simulated platform, calibrated on the run folder."""
    folders = [path for path in sources if path.is_dir()]
    if len(folders) != 1:
        raise ConfigError("--simulator is calibrated on one run folder", "give one run folder with --from")
    timeline, folder = timeline_of(folders[0]), RunFolder.open(folders[0])
    test = recorded_test(folder, timeline)
    identified = identify(timeline, test, load_profile(profile))
    if identified.reproduction.misfits:
        raise ConfigError(
            f"{folders[0].name}: {identified.reproduction}", "leave --simulator out: the fitted model answers then"
        )
    return CalibratedSimulator(identified.profile, test.package, identified.reproduction.within, workers)


def _eviction_factor(evictions: Evictions, source: Source) -> tuple[float, str]:
    """By how much evictions lengthen the work, and a warning that states the assumption."""
    steps = [test.step_s for test in source.recorded if test.step_s]
    step_s = evictions.step_s or max(steps, default=0.0)
    if step_s <= 0:
        raise ConfigError("a table does not say how long a step takes", "give --step-time, such as 10m")
    factor = eviction_factor(step_s, evictions.rate, evictions.replacement_s)
    return factor, (
        f"spot: {evictions.rate:g} evictions per node and hour, each repeating a step of {format_duration(step_s)}, "
        f"lengthen the work by {factor - 1:.1%}"
    )
