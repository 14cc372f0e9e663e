"""``experiment.html``: a whole experiment in one offline file: its answers, how they were found, and every test."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from harness.analysis.timeline import Floats
from harness.model.units import format_duration
from harness.planning.plan import Experiment, Result, Series, answers
from reports.figures.figure import Figure, Trace, axis, figure, line
from reports.page import Tile, offline_page

_COLOURS = ("--accent", "--good", "--warn", "--quiet", "--bad")
_QUESTIONS = {
    "grid": "How does it behave at each of these points?",
    "fewest-nodes": "How many nodes does each load need?",
    "largest-load": "How many runs does each number of nodes bear?",
}


@dataclass(frozen=True, slots=True)
class Conduct:
    """An experiment as it was carried out.

    Attributes:
        name: of the experiment.
        experiment: question and axes.
        slos: objectives, as texts.
        results: in the order of the tests.
        duration: the name of the figure that is the whole test's seconds.
        links: each test's report, relative to the page; simulated tests have none.
        sentences: the answers and the comparisons of variants, for people.
    """

    name: str
    experiment: Experiment
    slos: tuple[str, ...]
    results: tuple[Result, ...]
    duration: str
    links: Mapping[int, str]
    sentences: tuple[str, ...]


def render(conduct: Conduct) -> bytes:
    """The page as UTF-8; the same experiment gives the same bytes."""
    drawn = [*_searches(conduct), *_times(conduct)]
    metrics = list(dict.fromkeys(name for result in conduct.results for name in result.values))
    return offline_page(
        "experiment.html.j2",
        {each.key: each for each in drawn},
        conduct=conduct,
        headline=conduct.sentences[0] if len(conduct.sentences) == 1 else _QUESTIONS[conduct.experiment.question.value],
        tiles=_tiles(conduct),
        metrics=metrics,
        rows=[(place, result, [_number(result.values.get(name)) for name in metrics])
              for place, result in enumerate(conduct.results, 1)],
    )  # fmt: skip


def _tiles(conduct: Conduct) -> list[Tile]:
    plan = conduct.experiment
    cells = len(plan.loads) * len(plan.nodes) * len(plan.variants) * plan.repetitions
    share = f"{len(conduct.results) / cells:.0%} of the whole grid's {cells:,}"
    took = sum(result.values.get(conduct.duration, 0.0) for result in conduct.results)
    return [
        Tile("Tests", f"{len(conduct.results):,}", share),
        Tile("Under load", format_duration(took), "all tests together"),
        Tile("Loads", _axis(plan.loads), "runs at once"),
        Tile("Nodes", _axis(plan.nodes)),
        Tile("Order", plan.order.value, f"seed {plan.seed}, {plan.repetitions} repetitions"),
    ]


def _searches(conduct: Conduct) -> list[Figure]:
    """The path of each search: what was tried one after the other, and with what result."""
    made = []
    for at, found in enumerate(answers(conduct.experiment, conduct.results)):
        places, tried, met = _path(found.series, conduct.results)
        searched = "nodes" if found.series.searched == "nodes" else "runs at once"
        traces = [
            line("in this order", places, tried, "--quiet", dash="dot"),
            _points("met", places[met], tried[met], "--good", "circle"),
            _points("missed", places[~met], tried[~met], "--bad", "x"),
        ]
        if found.value is not None:
            ends = np.array([places[0], places[-1]])
            traces.append(line("the answer", ends, np.full(2, float(found.value)), "--accent", width=2.0))
        low, high = min(found.series.candidates), max(found.series.candidates)
        margin = 0.06 * (high - low) + 0.5
        layout = {
            "xaxis": axis("test", dtick=max(1, len(conduct.results) // 12)),
            "yaxis": axis(searched, range=[low - margin, high + margin]),
        }
        caption = (
            "Each mark is one test. The search tries the middle of what is left, and the neighbours of the boundary "
            "again until their majority is clear."
        )
        made.append(figure(f"search-{at}", f"The search for {_named(found.series)}", caption, traces, layout))
    return made


def _named(series: Series) -> str:
    of = f"{series.fixed} runs" if series.searched == "nodes" else f"{series.fixed} nodes"
    return of if series.variant == "default" else f"{of}, {series.variant}"


def _path(series: Series, results: Sequence[Result]) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    rows = []
    for place, result in enumerate(results, 1):
        p = result.point
        fixed, value = (p.load, p.nodes) if series.searched == "nodes" else (p.nodes, p.load)
        if p.variant == series.variant and fixed == series.fixed:
            rows.append((place, value, result.met))
    places, tried, met = np.array(rows, dtype=float).reshape(-1, 3).T
    return places, tried, met > 0


def _times(conduct: Conduct) -> list[Figure]:
    """How long tests took, by nodes (or by load, where there is one number of nodes)."""
    by_nodes = len({result.point.nodes for result in conduct.results}) > 1
    groups: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for result in conduct.results:
        p, took = result.point, result.values.get(conduct.duration)
        x, other = (p.nodes, p.load) if by_nodes else (p.load, p.nodes)
        if took is not None:
            groups.setdefault((p.variant, other), []).append((float(x), took))
    if not groups:
        return []
    traces = []
    for at, ((variant, other), places) in enumerate(sorted(groups.items())):
        colour = _COLOURS[at % len(_COLOURS)]
        x, took = np.array(sorted(places)).T
        sizes = np.unique(x)
        of = f"{other} {'runs' if by_nodes else 'nodes'}"
        name = of if variant == "default" else f"{variant}, {of}"
        traces.append(line(name, sizes, np.array([took[x == size].mean() for size in sizes]), colour))
        traces.append(_points(name, x, took, colour, "circle") | {"showlegend": False})
    layout = {
        "xaxis": axis("nodes" if by_nodes else "runs at once", rangemode="tozero"),
        "yaxis": axis("seconds until the last run was over", rangemode="tozero"),
    }
    caption = "Each mark is one test; lines join the means of equal tests."
    return [figure("times", "How long the tests took", caption, traces, layout)]


def _points(name: str, x: Floats, y: Floats, of: str, symbol: str) -> Trace:
    return {
        "type": "scatter", "mode": "markers", "name": name, "x": x.tolist(), "y": y.tolist(),
        "marker": {"color": of, "size": 9, "symbol": symbol},
    }  # fmt: skip


def _axis(values: Sequence[int]) -> str:
    return f"{values[0]:,}" if len(values) == 1 else f"{values[0]:,} to {values[-1]:,}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.4g}"
