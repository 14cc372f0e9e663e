"""An answered question of capacity as a picture: which curves, tests and answers it shows, and the file it goes to."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from generators.width_plot import picture_format
from harness.analysis.capacity.answer import NODES, RUNS, WITHIN, Answer, Ask, Question, answer
from harness.cli.capacity_answered import Answered, amount, interval, sentence
from harness.model.errors import ConfigError
from harness.model.units import counted, format_duration
from reports.capacity_plot import MOST_CURVES, CapacityPlot, Curve, Mark, Point, draw

T = TypeVar("T")
_PLACES, _SIMULATED_PLACES = 60, 6  # along x; simulating one takes a second
_FARTHEST = 3.0  # times the largest size asked for: the end of an interval that goes on


def file_maker(path: Path) -> Callable[[Answered, Ask | None], None]:
    """What writes the picture, by the file's ending.

    Raises:
        ConfigError: the ending is none of .svg, .png and .html, or what draws it is not installed.
    """
    if path.suffix.lower() not in {".svg", ".png", ".html"}:
        raise ConfigError(f"--plot {path}: the ending is none of .svg, .png and .html", "such as --plot capacity.svg")
    page = path.suffix.lower() == ".html"
    made = str.encode if page else picture_format(path)

    def write(answered: Answered, ask: Ask | None) -> None:
        svg = draw(picture(answered, ask))
        try:
            path.write_bytes(_page(answered, svg) if page else made(svg))
        except OSError as error:
            raise ConfigError(f"--plot {path} can't be written: {error.strerror}", "name another file") from error

    return write


def _page(answered: Answered, svg: str) -> bytes:
    from markupsafe import Markup

    from reports.page import offline_page

    cells = answered.grid or (answered.first,)
    asked = answered.first.asked
    names = [name for name in (RUNS, NODES, WITHIN) if name != asked]
    rows = [
        (*(amount(name, getattr(c, name)) for name in names),
         *(amount(asked, value) or "none" for value in (c.value, c.low, c.high)),
         c.binding, "; ".join(c.warnings))
        for c in cells
    ]  # fmt: skip
    titles = {RUNS: "Runs", NODES: "Nodes", WITHIN: "Time"}
    heads = (*(titles[name] for name in names), titles[asked], "At least", "At most", "Binding", "Warnings")
    return offline_page(
        "capacity.html.j2", {}, headline=sentence(answered.first), answered=answered, heads=heads, rows=rows,
        interval=interval(answered.first),
        observations=counted(answered.model.fitted_on.observations, "observation"),
        svg=Markup(svg),  # noqa: S704  # our own drawing, its texts escaped
    )  # fmt: skip


def picture(answered: Answered, ask: Ask | None) -> CapacityPlot:
    """Time over nodes, a curve for each number of runs; where runs are asked, over runs and one for each of nodes."""
    cells = _shown(answered)
    across = _across(cells)
    along = RUNS if across == NODES else NODES
    sizes = _some(sorted({float(getattr(cell, along)) for cell in cells}))
    seen = answered.model.fitted_on
    observed, sizes_observed = (seen.nodes, seen.runs) if across == NODES else (seen.runs, seen.nodes)
    places = _places(cells, across, observed, _SIMULATED_PLACES if ask else _PLACES)
    curves = []
    for size in sizes:
        low, middle, high = _times(answered, ask, across, size, places)
        name = counted(size, along[:-1])
        within = sizes_observed[0] <= size <= sizes_observed[1]
        curves.append(Curve(name, places, low, middle, high, within))
    limits = () if answered.first.asked == WITHIN else (answered.first.within_s or 0.0,)
    titles = {NODES: "How long runs take, by nodes", RUNS: "How long runs take, by their number"}
    return CapacityPlot(
        titles[across], across, tuple(curves), tuple(_points(answered, across, sizes)),
        tuple(_marks(cells, across, along, sizes)), limits, observed,
    )  # fmt: skip


def _shown(answered: Answered) -> tuple[Answer, ...]:
    """The grid; of several times that were given, the first: answers to all of them would hide each other."""
    first = answered.first
    return tuple(c for c in answered.grid if first.asked == WITHIN or c.within_s == first.within_s) or (first,)


def _across(cells: Sequence[Answer]) -> str:
    """What goes along x: the asked one, else nodes, unless there is one number of them for several of runs."""
    if cells[0].asked in {RUNS, NODES}:
        return cells[0].asked
    nodes, runs = ({getattr(cell, name) for cell in cells} for name in (NODES, RUNS))
    return RUNS if len(nodes) == 1 < len(runs) else NODES


def _some(sizes: list[float]) -> list[float]:
    """At most as many as there are colours, the first and the last among them."""
    chosen = np.unique(np.linspace(0, len(sizes) - 1, min(len(sizes), MOST_CURVES)).round().astype(int))
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


def _times(
    answered: Answered, ask: Ask | None, across: str, size: float, places: tuple[float, ...]
) -> tuple[tuple[float, ...], ...]:
    """Quantiles of the time along x: low, middle, high."""

    def sizes(x: T) -> tuple[T | float, T | float]:
        return (size, x) if across == NODES else (x, size)

    if ask is None:
        runs, nodes = sizes(np.array(places))
        return tuple(map(tuple, answered.model.durations(runs, nodes, (0.05, 0.5, 0.95)).tolist()))
    asked = [Question(runs=sizes(x)[0], nodes=sizes(x)[1]) for x in places]
    told = [answer(answered.model, question, ask) for question in asked]
    return tuple(
        tuple(value or 0.0 for value in row) for row in zip(*((t.low, t.value, t.high) for t in told), strict=True)
    )


def _points(answered: Answered, across: str, sizes: Sequence[float]) -> Iterator[Point]:
    for test in answered.source.observations:
        x, size = (test.nodes, test.runs) if across == NODES else (test.runs, test.nodes)
        curve = sizes.index(size) if size in sizes else None
        tested = f"{counted(test.runs, 'run')} on {counted(test.nodes, 'node')}"
        label = f"tested: {tested} took {format_duration(test.duration_s)}"
        yield Point(x, test.duration_s, label, curve)


def _marks(cells: Sequence[Answer], across: str, along: str, sizes: Sequence[float]) -> Iterator[Mark]:
    for cell in cells:
        x, time_s, size = getattr(cell, across), cell.within_s, getattr(cell, along)
        if size in sizes and x and time_s:
            bounds = (cell.low, cell.high) if cell.asked == across else (None, None)
            yield Mark(x, time_s, sentence(cell), sizes.index(size), *bounds)
