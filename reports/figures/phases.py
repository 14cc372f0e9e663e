"""Where the time went: phases of the runs, and how long pods waited."""

import numpy as np

from harness.analysis.result import Result
from harness.analysis.stats.trend import degradation
from harness.analysis.timeline import Floats, Ints, distinct, floats
from harness.analysis.waits.waits import Waits, waits
from harness.model.phases import MEANINGS, RUN_PHASES, UNSCHEDULABLE
from harness.model.units import counted, format_duration
from reports.figures.figure import Figure, Trace, axis, bars, figure, unit_of

_NOTABLE = 1e-3  # of the mean duration
_GROUPS = (("typical (p50)", 0.5), ("slow (p90)", 0.9), ("slowest (p99)", 0.99))
_QUANTILE_MARGIN = 0.02  # of the runs, on each side of a quantile
_MOST_BARS = 60
_LEAST_RUNS = 4
_BINS = 40
_FIRST_S = 60.0
_SOON_S = 5.0


def color(phase: str) -> str:
    """The CSS variable of a phase's colour."""
    return f"--phase-{phase.replace(' ', '-')}"


def phases(result: Result) -> Figure | None:
    """Mean seconds by phase: of all runs, of typical ones and of slow ones; none without runs that are over."""
    split = waits(result.timeline)
    if not split.row.size:
        return None
    unit = unit_of(float(split.total.max()))
    means = {name: _means(split, rows) for name, rows in reversed(_groups(split).items())}  # the first at the bottom
    traces: list[Trace] = [
        {
            "type": "bar", "orientation": "h", "name": phase, "y": [*means],
            "x": [float(mean[k]) / unit.seconds for mean in means.values()],
            "marker": {"color": color(phase)}, "hovertemplate": f"%{{x:.4g}} {unit.sign}<extra>{phase}</extra>",
        }
        for k, phase in enumerate(RUN_PHASES)
        if any(abs(mean[k]) > _NOTABLE * float(split.total.mean()) for mean in means.values())
    ]  # fmt: skip
    layout = {"barmode": "relative", "xaxis": axis(f"{unit.name} from due to end"), "yaxis": axis("", automargin=True)}
    top = max(result.phases.phases, key=lambda phase: phase.share)
    caption = (
        f"{top.share:.0%} of the runs' time: {MEANINGS[top.name]} ({top.name}). "
        "The phases of a run add up to its duration."
    )
    if any(x < 0 for trace in traces for x in trace["x"]):
        caption += " Negative values come from timestamps in whole seconds."
    return figure("phases", "Run duration by phase", caption, traces, layout, height=300)


def _groups(split: Waits) -> dict[str, Ints]:
    """All runs, and those around the median, the 90th and the 99th percentile of the duration."""
    order = np.argsort(split.total, kind="stable")
    near = max(1, round(order.size * _QUANTILE_MARGIN))
    centres = {name: int(np.ceil(level * order.size)) - 1 for name, level in _GROUPS}
    around = {name: order[max(0, centre - near) : centre + near + 1] for name, centre in centres.items()}
    return {"all runs (mean)": order, **around}


def _means(split: Waits, rows: Ints) -> Floats:
    """Mean seconds of some runs in each of RUN_PHASES."""
    return np.array([float(split.seconds[rows, k].mean()) for k in range(len(RUN_PHASES))])


def phases_by_order(result: Result) -> Figure | None:
    """Mean seconds by phase in order of arrival: what grows under load; none with fewer than four runs."""
    split = waits(result.timeline)
    if split.row.size < _LEAST_RUNS:
        return None
    seq = floats(result.timeline.runs, "seq")[split.row]
    size = -(-int(seq.max() + 1) // _MOST_BARS)
    group = (seq // size).astype(np.int64)
    parts = [np.flatnonzero(group == k) for k in np.unique(group)]
    middles: Floats = (np.unique(group) + 0.5) * np.float64(size)
    means = np.array([_means(split, part) for part in parts])
    unit = unit_of(max(float(split.total[part].mean()) for part in parts))
    traces = [
        bars(phase, middles, means[:, k] / unit.seconds, color(phase), 0.92 * size)
        | {"hovertemplate": f"%{{y:.4g}} {unit.sign}<extra>{phase}</extra>"}
        for k, phase in enumerate(RUN_PHASES)
        if (abs(means[:, k]) > _NOTABLE * float(split.total.mean())).any()
    ]
    layout = {
        "barmode": "relative", "showlegend": False,
        "xaxis": axis("run, in order of arrival"), "yaxis": axis(f"mean {unit.name}"),
    }  # fmt: skip
    caption = (
        "The same phases in order of arrival: what grows from left to right is the queue. "
        f"Each bar is the mean of {counted(size, 'run')}."
    )
    trend = degradation(result.timeline)
    if trend is not None and trend.grows:
        caption += f" Each further run took {trend.slope:.2g} s longer ({trend.low:.2g} to {trend.high:.2g} s)."
    return figure("phases-by-order", "Run duration by order of arrival", caption, traces, layout, height=300)


def pending(result: Result) -> Figure | None:
    """A histogram of the time that pods waited for a node; an open wait counts up to the end of the observation.

    None when no pod waited.
    """
    timeline = result.timeline
    pods, mine = timeline.pods, timeline.of_runs(UNSCHEDULABLE)
    start, end = floats(pods, "start_s")[mine], floats(pods, "end_s")[mine]
    waited = np.where(np.isfinite(end), end, timeline.end_s) - start
    if not waited.size:
        return None
    count, longest = distinct(pods["pod"].to_numpy()[(pods["row"] >= 0).to_numpy(dtype=bool)]), float(waited.max())
    top = max(longest, 0.0)  # of clocks that disagree, all may be below 0
    edges_s = np.linspace(min(0.0, float(waited.min())), top * (1 + 1e-9) + 1e-9, _BINS + 1)
    soon = 1 - int(np.count_nonzero(waited > _SOON_S)) / max(count, 1)
    unit = unit_of(longest)
    caption = (
        f"{waited.size:,} of {count:,} pods found no node at first; median wait of those "
        f"{format_duration(float(np.median(waited)))}. {soon:.0%} of all pods waited less than 5 s. "
        f"Each bar is {format_duration(float(edges_s[1] - edges_s[0]))} wide."
    )
    edges = edges_s / unit.seconds
    at, width = (edges[1:] + edges[:-1]) / 2, float(edges[1] - edges[0]) * 0.95
    early = start < _FIRST_S
    parts = (
        ("pending since the first minute", waited[early], "--accent"),
        ("pending since a later time", waited[~early], "--warn"),
    )
    traces = [
        bars(name, at, np.histogram(part, bins=edges_s)[0].astype(np.float64), of, width)
        for name, part, of in parts
        if part.size
    ]
    layout = {
        "xaxis": axis(f"{unit.name} unschedulable"), "yaxis": axis("pods"), "barmode": "stack",
        "showlegend": len(traces) > 1,
    }  # fmt: skip
    return figure("pending", "Pending pods", caption, traces, layout, height=280)
