"""``experiment.html``: an experiment in one offline file: its answers, how they were found, and every test."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from harness.analysis.timeline import Floats
from harness.model.experiment import Result, Series
from harness.model.units import counted, format_duration
from reports.experiment import CompletedExperiment, sentences
from reports.figures.figure import Figure, Trace, axis, figure, line
from reports.page import Tile, offline_page

_COLOURS = ("--accent", "--good", "--warn", "--quiet", "--bad")
_QUESTIONS = {
    "grid": "How does the platform behave at each of these points?",
    "fewest-nodes": "How many nodes does each load need?",
    "largest-load": "How many runs can each number of nodes handle?",
}


def render(completed: CompletedExperiment) -> bytes:
    """The page as UTF-8; the same experiment gives the same bytes."""
    drawn = [*_searches(completed), *_times(completed)]
    found = sentences(completed)
    metrics = list(dict.fromkeys(name for result in completed.results for name in result.values))
    return offline_page(
        "experiment.html.j2",
        {each.key: each for each in drawn},
        completed=completed,
        sentences=found,
        headline=found[0] if len(found) == 1 else _QUESTIONS[completed.experiment.question.value],
        tiles=_tiles(completed),
        metrics=metrics,
        rows=[(place, result, [_number(result.values.get(name)) for name in metrics])
              for place, result in enumerate(completed.results, 1)],
    )  # fmt: skip


def _tiles(completed: CompletedExperiment) -> list[Tile]:
    plan = completed.experiment
    cells = len(plan.loads) * len(plan.nodes) * len(plan.variants) * plan.repetitions
    share = f"{len(completed.results) / cells:.0%} of the whole grid's {cells:,}"
    took = sum(result.values.get(completed.duration, 0.0) for result in completed.results)
    return [
        Tile("Tests", f"{len(completed.results):,}", share),
        Tile("Under load", format_duration(took), "all tests together"),
        Tile("Loads", _axis(plan.loads), "runs at once"),
        Tile(f"{plan.unit.capitalize()}s", _axis(plan.nodes)),
        Tile("Order", plan.order.value, f"seed {plan.seed}, {plan.repetitions} repetitions"),
    ]


def _searches(completed: CompletedExperiment) -> list[Figure]:
    """The path of each search: the candidates in the order of the tests, and their results."""
    made = []
    for at, answer in enumerate(completed.answers):
        places, tried, met = _path(answer.series, completed.results)
        searched = f"{answer.series.unit}s" if answer.series.searched == "nodes" else "runs at once"
        traces = [
            line("order of tests", places, tried, "--quiet", dash="dot"),
            _points("met", places[met], tried[met], "--good", "circle"),
            _points("missed", places[~met], tried[~met], "--bad", "x"),
        ]
        if answer.value is not None:
            ends = np.array([places[0], places[-1]])
            traces.append(line("the answer", ends, np.full(2, float(answer.value)), "--accent", width=2.0))
        low, high = min(answer.series.candidates), max(answer.series.candidates)
        margin = 0.06 * (high - low) + 0.5
        layout = {
            "xaxis": axis("test", dtick=max(1, len(completed.results) // 12)),
            "yaxis": axis(searched, range=[low - margin, high + margin]),
        }
        caption = (
            "Each mark is one test. The search bisects the remaining candidates and repeats those next to the boundary "
            "until their majority is clear."
        )
        made.append(figure(f"search-{at}", f"The search for {_named(answer.series)}", caption, traces, layout))
    return made


def _named(series: Series) -> str:
    of = counted(series.fixed, "run" if series.searched == "nodes" else series.unit)
    return of if series.variant == "default" else f"{of}, {series.variant}"


def _path(series: Series, results: Sequence[Result]) -> tuple[Floats, Floats, NDArray[np.bool_]]:
    rows = []
    for place, result in enumerate(results, 1):
        if (value := series.candidate(result.point)) is not None:
            rows.append((place, value, result.met))
    places, tried, met = np.array(rows, dtype=float).reshape(-1, 3).T
    return places, tried, met > 0


def _times(completed: CompletedExperiment) -> list[Figure]:
    """The tests' makespans by nodes (by load where all tests ran on the same number of nodes)."""
    by_nodes = len({result.point.nodes for result in completed.results}) > 1
    groups: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for result in completed.results:
        p, took = result.point, result.values.get(completed.duration)
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
        of = counted(other, "run" if by_nodes else completed.experiment.unit)
        name = of if variant == "default" else f"{variant}, {of}"
        traces.append(line(name, sizes, np.array([took[x == size].mean() for size in sizes]), colour))
        traces.append(_points(name, x, took, colour, "circle") | {"showlegend": False})
    layout = {
        "xaxis": axis(f"{completed.experiment.unit}s" if by_nodes else "runs at once", rangemode="tozero"),
        "yaxis": axis("makespan (s)", rangemode="tozero"),
    }
    caption = "Each mark is one test; lines connect the means of repeated tests."
    return [figure("times", "Makespan", caption, traces, layout)]


def _points(name: str, x: Floats, y: Floats, of: str, symbol: str) -> Trace:
    return {
        "type": "scatter", "mode": "markers", "name": name, "x": x.tolist(), "y": y.tolist(),
        "marker": {"color": of, "size": 9, "symbol": symbol},
    }  # fmt: skip


def _axis(values: Sequence[int]) -> str:
    return f"{values[0]:,}" if len(values) == 1 else f"{values[0]:,} to {values[-1]:,}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.4g}"
