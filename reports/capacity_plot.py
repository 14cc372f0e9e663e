"""Capacity as a plot: time against nodes (or runs), as SVG.

Both axes are logarithmic: perfect scaling is a straight line, and equal relative intervals look equally wide. Sizes
that were tested are on white; extrapolation is on grey, with dashed lines.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import TypeVar

import numpy as np

from harness.analysis.capacity.answer import NODES, RUNS, WITHIN, Answer, Answered, Question, answer, sentence
from harness.model.units import counted, format_duration
from harness.svg import COLOURS, INK, MUTED, Plot, Scale

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


_SIZE, _MARGINS = (960, 560), (76, 128, 84, 62)
_LINE = 17  # pixels between two labels
_TIMES = (
    1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 432000, 864000,
)  # fmt: skip
_FAR = 2.0


def draw(plot: CapacityPlot) -> str:
    """The picture as SVG text."""
    drawn = Plot(plot.title, "; ".join(mark.label for mark in plot.marks), _SIZE, _MARGINS)
    key = "line: median · band: 90% interval of the next test · dots: completed tests · dashed or grey: extrapolated"
    drawn.text(drawn.left, 49, key, fill=MUTED)
    x, y = _scales(plot, drawn)
    _draw_extrapolated(drawn, plot.observed, x)
    drawn.x_axis(x, ((value, f"{value:,.0f}") for value in _counts(x.low, x.high)))
    drawn.y_axis(y, ((float(s), format_duration(s)) for s in _TIMES if y.low <= s <= y.high))
    drawn.text((drawn.left + drawn.right) / 2, drawn.bottom + 46, plot.x_name, text_anchor="middle", fill=MUTED)
    drawn.text(20, drawn.top - 7, "time", fill=MUTED)
    for colour, curve in zip(COLOURS, plot.curves, strict=False):
        _draw_curve(drawn, curve, plot.observed, colour, x, y)
    for test in plot.tests:
        fill, stroke = ("white", "#6d7a85") if test.curve is None else (COLOURS[test.curve], "white")
        drawn.dot(x(test.x), y(test.time_s), test.label, fill=fill, stroke=stroke)
    for limit_s in plot.limits_s:
        drawn.line([(drawn.left, y(limit_s)), (drawn.right, y(limit_s))], stroke=INK, stroke_width=1.5)
        halo: dict[str, str | float] = {"stroke": "white", "stroke_width": 4, "paint_order": "stroke"}
        drawn.text(drawn.left + 6, y(limit_s) - 6, f"within {format_duration(limit_s)}", font_weight=600, **halo)
    for mark in plot.marks:
        _draw_interval(drawn, mark, x, y)
    for mark in plot.marks:
        at, height = x(mark.x), y(mark.time_s)
        diamond = [(at - 8, height), (at, height - 8), (at + 8, height), (at, height + 8)]
        drawn.polygon(diamond, mark.label, fill="white", stroke=COLOURS[mark.curve], stroke_width=2.5)
    _draw_names(drawn, plot, y)
    return drawn.svg()


def _scales(plot: CapacityPlot, drawn: Plot) -> tuple[Scale, Scale]:
    across = [v for curve in plot.curves for v in curve.x] + [test.x for test in plot.tests]
    times = [v for curve in plot.curves for v in (*curve.low, *curve.high)] + [test.time_s for test in plot.tests]
    times += plot.limits_s
    return (
        drawn.x_scale(min(across) / 1.08, max(across) * 1.08, logarithmic=True),
        drawn.y_scale(min(times) / 1.1, max(times) * 1.1, logarithmic=True),
    )


def _draw_extrapolated(drawn: Plot, observed: tuple[float, float], x: Scale) -> None:
    """Grey where nothing was tested, darker beyond twice the largest size, labelled where there is room."""
    least, most = observed
    for low, high, shade, name in (
        (x.low, min(least, x.high), "#f1f1ef", "not observed"),
        (max(most, x.low), min(_FAR * most, x.high), "#f1f1ef", "not observed"),
        (_FAR * most, x.high, "#e3e3df", "beyond twice"),
    ):
        if high > low:
            start, end = x(low), x(high)
            drawn.rectangle(start, drawn.top, end - start, drawn.bottom - drawn.top, fill=shade)
            if end - start > 8 * len(name):
                drawn.text(round((start + end) / 2, 1), drawn.top - 7, name, text_anchor="middle", fill=MUTED)


def _draw_curve(drawn: Plot, curve: Curve, observed: tuple[float, float], colour: str, x: Scale, y: Scale) -> None:
    upper, middle, lower = (
        [(x(a), y(b)) for a, b in zip(curve.x, times, strict=True)] for times in (curve.high, curve.middle, curve.low)
    )
    drawn.polygon([*upper, *reversed(lower)], fill=colour, fill_opacity=0.14)
    drawn.line(middle, stroke=colour, stroke_width=2, stroke_dasharray="5 4")
    least, most = observed
    tested = [place for place, size in zip(middle, curve.x, strict=True) if curve.observed and least <= size <= most]
    if len(tested) > 1:
        drawn.line(tested, stroke=colour, stroke_width=2)


def _counts(low: float, high: float) -> list[float]:
    """1, 2, 5, 10, … within the range; where those are few, multiples of a whole step."""
    decades = range(floor(log10(low)), ceil(log10(high)) + 1)
    round_ = [factor * 10.0**power for power in decades for factor in (1, 2, 5)]
    found = [value for value in round_ if low <= value <= high and value >= 1]
    if len(found) >= 4:
        return found
    step = max(1, ceil((high - low) / 10))
    return [float(value) for value in range(ceil(low / step) * step, floor(high) + 1, step)]


def _draw_interval(drawn: Plot, mark: Mark, x: Scale, y: Scale) -> None:
    """A bar along x; an arrow marks an interval without an upper end."""
    if mark.low is None:
        return
    height, colour = y(mark.time_s), COLOURS[mark.curve]
    end = x(x.high if mark.high is None else mark.high)
    drawn.line([(x(mark.low), height), (end, height)], stroke=colour, stroke_width=6, stroke_opacity=0.6)
    if mark.high is None:
        drawn.polygon([(end + 9, height), (end - 3, height - 7), (end - 3, height + 7)], fill=colour)


def _draw_names(drawn: Plot, plot: CapacityPlot, y: Scale) -> None:
    """Each curve's name at its right end, moved apart where two would overlap."""
    below = float(drawn.top)
    for height, at in sorted((y(curve.middle[-1]), at) for at, curve in enumerate(plot.curves)):
        below = max(height + 4.5, below)
        drawn.text(drawn.right + 10, round(below, 1), plot.curves[at].name, fill=COLOURS[at], font_weight=600)
        below += _LINE
