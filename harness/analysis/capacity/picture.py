"""What a picture of capacity shows: curves of time, completed tests, and answers."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from harness.analysis.capacity.answer import NODES, RUNS, WITHIN, Answer, Question, answer
from harness.analysis.capacity.answered import Answered, sentence
from harness.model.units import counted, format_duration

T = TypeVar("T")
_MOST_CURVES = 6
_PLACES, _SIMULATED_PLACES = 60, 6  # along x; simulating one takes a second
_FARTHEST = 3.0  # times the largest size asked for: where an interval without an upper end is cut


@dataclass(frozen=True, slots=True)
class Curve:
    """The median time with its 90 % interval, in seconds, along x; `observed` says whether its size was tested."""

    name: str
    x: tuple[float, ...]
    low: tuple[float, ...]
    middle: tuple[float, ...]
    high: tuple[float, ...]
    observed: bool


@dataclass(frozen=True, slots=True)
class Test:
    """A completed test: its place, its tooltip, and the index of the curve it belongs to, if any."""

    x: float
    time_s: float
    label: str
    curve: int | None


@dataclass(frozen=True, slots=True)
class Mark:
    """An answer: its place on a curve and, where it is a number of nodes or runs, the interval along x."""

    x: float
    time_s: float
    label: str
    curve: int
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class CapacityPlot:
    """All that is drawn; `observed` is the range of x that was tested, `limits_s` the time limits asked about."""

    title: str
    x_name: str
    curves: tuple[Curve, ...]
    tests: tuple[Test, ...]
    marks: tuple[Mark, ...]
    limits_s: tuple[float, ...]
    observed: tuple[float, float]


def picture(answered: Answered) -> CapacityPlot:
    """Time over nodes with a curve per number of runs; where runs are asked, over runs with a curve per size."""
    cells = _shown(answered)
    across = _across(cells)
    along = RUNS if across == NODES else NODES
    sizes = _some(sorted({float(getattr(cell, along)) for cell in cells}))
    seen = answered.model.fitted_on
    observed, sizes_observed = (seen.nodes, seen.runs) if across == NODES else (seen.runs, seen.nodes)
    places = _places(cells, across, observed, _SIMULATED_PLACES if answered.ask else _PLACES)
    curves = []
    for size in sizes:
        low, middle, high = _times(answered, across, size, places)
        name = counted(size, "run" if along == RUNS else seen.unit)
        within = sizes_observed[0] <= size <= sizes_observed[1]
        curves.append(Curve(name, places, low, middle, high, within))
    limits = () if answered.first.asked == WITHIN else (answered.first.within_s or 0.0,)
    x_name = RUNS if across == RUNS else f"{seen.unit}s"
    return CapacityPlot(
        f"Time until all runs finish, by {x_name}", x_name, tuple(curves), tuple(_tests(answered, across, sizes)),
        tuple(_marks(cells, across, along, sizes)), limits, observed,
    )  # fmt: skip


def _shown(answered: Answered) -> tuple[Answer, ...]:
    """The grid; of several time limits only the first, as the answers would hide each other."""
    first = answered.first
    return tuple(c for c in answered.grid if first.asked == WITHIN or c.within_s == first.within_s) or (first,)


def _across(cells: Sequence[Answer]) -> str:
    """The quantity along x: the one asked for, else nodes unless they are fixed while runs vary."""
    if cells[0].asked in {RUNS, NODES}:
        return cells[0].asked
    nodes, runs = ({getattr(cell, name) for cell in cells} for name in (NODES, RUNS))
    return RUNS if len(nodes) == 1 < len(runs) else NODES


def _some(sizes: list[float]) -> list[float]:
    """At most `_MOST_CURVES`, with the first and the last among them."""
    chosen = np.unique(np.linspace(0, len(sizes) - 1, min(len(sizes), _MOST_CURVES)).round().astype(int))
    return [sizes[k] for k in chosen]


def _places(cells: Sequence[Answer], across: str, observed: tuple[float, float], count: int) -> tuple[float, ...]:
    asked = [float(value) for cell in cells if (value := getattr(cell, across))]
    least, most = min([*asked, observed[0]]), max([*asked, observed[1]])
    if cells[0].asked == across:
        highs = [cell.high for cell in cells if cell.high]
        most = min(max([most, *highs]), _FARTHEST * most)
    if most < 2 * least:
        least, most = least / 2, 2 * most
    whole = np.unique(np.round(np.geomspace(max(1.0, least), most, count)))
    return tuple(whole.tolist())


def _times(answered: Answered, across: str, size: float, places: tuple[float, ...]) -> tuple[tuple[float, ...], ...]:
    """Quantiles of the time along x: low, middle, high."""

    def sizes(x: T) -> tuple[T | float, T | float]:
        return (size, x) if across == NODES else (x, size)

    if answered.ask is None:
        runs, nodes = sizes(np.array(places))
        return tuple(map(tuple, answered.model.durations(runs, nodes, (0.05, 0.5, 0.95)).tolist()))
    questions = [Question(runs=sizes(x)[0], nodes=sizes(x)[1]) for x in places]
    answers = [answer(answered.model, question, answered.ask) for question in questions]
    return tuple(
        tuple(value or 0.0 for value in row) for row in zip(*((a.low, a.value, a.high) for a in answers), strict=True)
    )


def _tests(answered: Answered, across: str, sizes: Sequence[float]) -> Iterator[Test]:
    for test in answered.observations:
        x, size = (test.nodes, test.runs) if across == NODES else (test.runs, test.nodes)
        curve = sizes.index(size) if size in sizes else None
        tested = f"{counted(test.runs, 'run')} on {counted(test.nodes, answered.model.fitted_on.unit)}"
        label = f"tested: {tested} took {format_duration(test.duration_s)}"
        yield Test(x, test.duration_s, label, curve)


def _marks(cells: Sequence[Answer], across: str, along: str, sizes: Sequence[float]) -> Iterator[Mark]:
    for cell in cells:
        x, time_s, size = getattr(cell, across), cell.within_s, getattr(cell, along)
        if size in sizes and x and time_s:
            bounds = (cell.low, cell.high) if cell.asked == across else (None, None)
            yield Mark(x, time_s, sentence(cell), sizes.index(size), *bounds)
