"""Single runs and single nodes over time."""

import numpy as np

from harness.analysis.curves import mean_active
from harness.analysis.timeline import Bools, Floats, Ints, floats
from harness.analysis.waits import PRECEDENCE, segments
from harness.analysis.workers import WORKING
from harness.model.phases import CONTROLLER, DISPATCH, POD_PHASES, PUBLISHING, RUN_PHASES, RUNNING, SUBMIT
from reports.figures.figure import Figure, Trace, axis, figure, time_axis
from reports.figures.phases import color
from reports.report import Report

_MOST_RUNS = 60
_MOST_NODES = 60


def runs(report: Report) -> Figure | None:
    """Each phase of some runs, evenly chosen in the order of arrival, as bars over time."""
    split, timeline = report.waits, report.timeline
    if not split.row.size or not len(timeline.pods):
        return None
    chosen = split.row[np.unique(np.linspace(0, split.row.size - 1, min(_MOST_RUNS, split.row.size)).astype(int))]
    mask = np.zeros(len(timeline.runs), dtype=bool)
    mask[chosen] = True
    rows, phases, starts, ends = _stretches(report, chosen, mask)
    place = np.full(len(timeline.runs), -1)
    place[chosen] = np.arange(chosen.size)
    traces: list[Trace] = []
    for phase in RUN_PHASES:
        mine = (phases == phase) & (ends > starts)
        if mine.any():
            traces.append({
                "type": "bar", "orientation": "h", "name": phase, "y": place[rows[mine]].tolist(),
                "base": starts[mine].tolist(), "x": (ends - starts)[mine].tolist(), "width": 0.82,
                "marker": {"color": color(phase)}, "hovertemplate": "%{x:.2f} s<extra>" + phase + "</extra>",
            })  # fmt: skip
    seq = floats(timeline.runs, "seq")[chosen]
    ticks = np.unique(np.linspace(0, chosen.size - 1, min(10, chosen.size)).astype(int))
    layout = {
        "barmode": "overlay",
        "xaxis": time_axis(),
        "yaxis": axis(
            "run",
            autorange="reversed",
            tickvals=ticks.tolist(),
            ticktext=[f"{seq[k]:.0f}" for k in ticks],
            zeroline=False,
        ),
    }
    caption = (
        f"{chosen.size} of {split.row.size:,} runs, evenly chosen in the order of arrival. A run with several pods "
        "shows what the furthest of them does. Drag to look closer, double-click to go back."
    )
    return figure("gantt", "Runs over time", caption, traces, layout, height=max(300, 9 * chosen.size + 90))


def _stretches(
    report: Report, chosen: Ints, mask: Bools
) -> tuple[Ints, np.ndarray[tuple[int], np.dtype[np.str_]], Floats, Floats]:
    """(row, phase, start, end) of all stretches: what the load saw, what the pods did, what came after them."""
    due, sent, answered, over = (
        floats(report.timeline.runs, name)[chosen] for name in ("due_s", "sent_s", "answered_s", "over_s")
    )
    of_pods = segments(report.timeline, mask)
    names = np.array([*PRECEDENCE, CONTROLLER])
    first, last = (np.full(mask.size, np.nan) for _ in range(2))
    np.fmin.at(first, of_pods.row, of_pods.start)
    np.fmax.at(last, of_pods.row, of_pods.end)
    first, last = first[chosen], last[chosen]
    answered = np.where(over <= answered, np.fmin(answered, first), answered)  # the answer was the result
    parts = (
        (chosen, DISPATCH, due, sent), (chosen, SUBMIT, sent, answered), (chosen, CONTROLLER, answered, first),
        (chosen, PUBLISHING, last, over),
    )  # fmt: skip
    return (
        np.concatenate([of_pods.row, *(row for row, *_ in parts)]),
        np.concatenate([names[of_pods.level], *(np.full(chosen.size, phase) for _, phase, *_ in parts)]),
        np.concatenate([of_pods.start, *(start for *_, start, _ in parts)]),
        np.concatenate([of_pods.end, *(end for *_, end in parts)]),
    )


def nodes(report: Report) -> Figure | None:
    """How many steps worked on each node, or executions on each replica, over time."""
    timeline = report.timeline
    if report.workers is not None:
        what, place, phases = "executions", "replica", set(WORKING)
        names = [worker.name for worker in report.workers.workers]
    else:
        what, place, phases = "steps", "node", {RUNNING}
        workers = timeline.workers.sort_values(["ready_s", "name"], kind="stable")
        names = workers["name"].astype(str).tolist()
    working = np.isin(timeline.pods["phase"].to_numpy(), [POD_PHASES.index(phase) for phase in phases])
    pods = timeline.pods.loc[working & (timeline.pods["row"] >= 0), ["node", "start_s", "end_s"]]
    if not names or not len(pods):
        return None
    shown = [names[k] for k in np.unique(np.linspace(0, len(names) - 1, min(_MOST_NODES, len(names))).astype(int))]
    edges, grid = report.throughput.edges_s, []
    home, code = pods["node"].cat.codes.to_numpy(), {name: k for k, name in enumerate(pods["node"].cat.categories)}
    start, end = floats(pods, "start_s"), floats(pods, "end_s")
    for name in shown:
        here = home == code.get(name, -1)
        grid.append(mean_active(start[here], end[here], edges).tolist())
    short = _short(shown)
    most = max(max(row) for row in grid)
    trace = {
        "type": "heatmap", "x": report.throughput.middles_s.tolist(), "y": short, "z": grid, "zmin": 0, "zmax": most,
        "colorscale": [[0, "--wash"], [1, "--accent"]], "xgap": 1, "ygap": 2,
        "colorbar": {"thickness": 10, "outlinewidth": 0},
        "hovertemplate": "%{y}: %{z:.1f} " + what + "<extra></extra>", "name": f"{what} at work",
    }  # fmt: skip
    layout = {
        "xaxis": time_axis(showgrid=False),
        "yaxis": axis("", autorange="reversed", showgrid=False, type="category"),
        "showlegend": False,
    }
    which = "" if len(shown) == len(names) else f" {len(shown)} of {len(names)} {place}s, evenly chosen."
    first = "" if report.workers is not None else ", those that came first on top"
    caption = f"{what.capitalize()} at work on each {place}{first}; up to {most:.1f} at once on one.{which}"
    return figure("nodes", f"Work on the {place}s", caption, [trace], layout, height=max(200, 20 * len(shown) + 90))


def _short(names: list[str]) -> list[str]:
    """Names without the beginning they share up to its last dash, as long as they stay distinct."""
    shared = 0
    if len(names) > 1:
        same = next((k for k, letters in enumerate(zip(*names, strict=False)) if len(set(letters)) > 1), 0)
        shared = names[0].rfind("-", 0, same) + 1
    return [f"…{name[shared:]}" if shared else name for name in names]
