"""Answers to capacity questions from recorded tests: reads them, fits the model, and asks it or a simulator."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from harness.analysis.capacity.answer import Question, answer
from harness.analysis.capacity.answered import Answered
from harness.analysis.capacity.check import leave_one_out
from harness.analysis.capacity.fit import fit
from harness.analysis.capacity.next_test import next_test
from harness.analysis.capacity.recorded import eviction_factor
from harness.model.errors import ConfigError
from harness.model.units import format_duration
from harness.planning.identify import identify, recorded_test
from harness.planning.observations import Source, read
from harness.planning.simulated_capacity import CalibratedSimulator
from harness.planning.sweeps import DaskWorkers, Workers
from harness.planning.timelines import timeline_of
from harness.simulator.profile.file import load_profile
from harness.store.folder import RunFolder

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
