"""Where the time went: phases of the runs, and how long pods waited."""

import numpy as np

from harness.analysis.timeline import distinct, floats
from harness.model.phases import (
    BACKEND,
    COMPUTING,
    CONTROLLER,
    DISPATCH,
    LOADING,
    NETWORK,
    PROVISIONING,
    PUBLISHING,
    PULLING,
    QUEUED,
    RUN_PHASES,
    RUNNING,
    SCHEDULING,
    SENDING,
    STARTING,
    STORING,
    SUBMIT,
    UNKNOWN,
    UNSCHEDULABLE,
)
from harness.model.units import format_duration
from reports.figures.figure import Figure, Trace, axis, bars, figure, unit_of
from reports.report import Report

_BARS = 60
_FIRST_S = 60.0

MEANINGS = {
    DISPATCH: "runs waited for the load generator",
    SUBMIT: "runs waited for the API to take them on",
    CONTROLLER: "runs waited for their next pod to be created",
    UNSCHEDULABLE: "pods waited for room on a node",
    PROVISIONING: "pods waited for a node that was on its way",
    SCHEDULING: "pods waited for the scheduler",
    PULLING: "images were pulled",
    STARTING: "containers started",
    RUNNING: "steps worked",
    STORING: "outputs were stored",
    NETWORK: "requests and answers were under way",
    BACKEND: "executions waited for the backend and were prepared by it",
    QUEUED: "executions waited in the runtime, while its worker did something else",
    LOADING: "data was loaded from adapters",
    COMPUTING: "operators computed",
    SENDING: "data was sent to adapters",
    PUBLISHING: "runs were done and the platform did not say so yet",
    UNKNOWN: "no pods were observed, so nobody knows",
}


def color(phase: str) -> str:
    """The CSS variable of a phase's colour."""
    return f"--phase-{phase.replace(' ', '-')}"


def phases(report: Report) -> Figure | None:
    """Mean seconds by phase: of all runs, of the typical ones and of the slow ones."""
    split = report.waits
    if not split.row.size:
        return None
    order = np.argsort(split.total, kind="stable")
    rows = {"all runs (mean)": order}
    for name, level in (("typical (p50)", 0.5), ("slow (p90)", 0.9), ("slowest (p99)", 0.99)):
        near = max(1, round(split.row.size * 0.02))
        centre = int(np.ceil(level * split.row.size)) - 1
        rows[name] = order[max(0, centre - near) : centre + near + 1]
    labels = list(reversed(rows))
    traces: list[Trace] = []
    unit = unit_of(float(split.total[order[-1]]))
    for k, phase in enumerate(RUN_PHASES):
        means = [float(split.seconds[rows[label], k].mean()) for label in labels]
        if any(abs(mean) > 1e-3 * float(split.total.mean()) for mean in means):
            traces.append({
                "type": "bar", "orientation": "h", "name": phase, "y": labels,
                "x": [mean / unit.seconds for mean in means],
                "marker": {"color": color(phase)}, "hovertemplate": f"%{{x:.4g}} {unit.sign}<extra>{phase}</extra>",
            })  # fmt: skip
    layout = {"barmode": "relative", "xaxis": axis(f"{unit.name} from due to over"), "yaxis": axis("", automargin=True)}
    top = max(split.shares().items(), key=lambda item: item[1])
    caption = (
        f"{top[1]:.0%} of the runs' time: {MEANINGS[top[0]]} ({top[0]}). "
        "The phases of a run add up to its whole duration."
    )
    if any(x < 0 for trace in traces for x in trace["x"]):
        caption += " What is below 0 is due to the whole seconds in which platforms tell the time."
    return figure("phases", "Phase by phase", caption, traces, layout, height=300)


def phases_by_order(report: Report) -> Figure | None:
    """Mean seconds by phase over the order of arrival: what grows as the load goes on."""
    split = report.waits
    if split.row.size < 4:
        return None
    seq = floats(report.timeline.runs, "seq")[split.row]
    size = -(-int(seq.max() + 1) // _BARS)  # arrivals a bar; where none of them is over there is a gap
    place = (seq // size).astype(np.int64)
    groups = [np.flatnonzero(place == k) for k in np.unique(place)]
    x = [float((place[g[0]] + 0.5) * size) for g in groups]
    width = 0.92 * size
    traces, unit = [], unit_of(max(float(split.total[g].mean()) for g in groups))
    for k, phase in enumerate(RUN_PHASES):
        means = [float(split.seconds[g, k].mean()) for g in groups]
        if any(abs(mean) > 1e-3 * float(split.total.mean()) for mean in means):
            traces.append({
                "type": "bar", "name": phase, "x": x, "y": [mean / unit.seconds for mean in means], "width": width,
                "marker": {"color": color(phase)}, "hovertemplate": f"%{{y:.4g}} {unit.sign}<extra>{phase}</extra>",
            })  # fmt: skip
    layout = {
        "barmode": "relative", "showlegend": False,
        "xaxis": axis("run, in the order of arrival"), "yaxis": axis(f"mean {unit.name}"),
    }  # fmt: skip
    caption = "The same phases in the order of arrival: what grows from left to right is what the load waits for."
    found = report.degradation
    if found is not None and found.grows:
        caption += f" Each further run took {found.slope:.2g} s longer ({found.low:.2g} to {found.high:.2g} s)."
    return figure("phases-by-order", "How the waits grow", caption, traces, layout, height=300)


def pending(report: Report) -> Figure | None:
    """How long pods waited for room on a node."""
    pods, mine = report.timeline.pods, report.timeline.of_runs(UNSCHEDULABLE)
    end = floats(pods, "end_s")[mine]
    waited = np.where(np.isfinite(end), end, report.timeline.end_s) - floats(pods, "start_s")[mine]
    if not waited.size:
        return None
    unit = unit_of(float(waited.max()))
    edges = np.linspace(min(0.0, float(waited.min())), float(waited.max()) * (1 + 1e-9) + 1e-9, 41)
    counts = np.histogram(waited, bins=edges)[0].astype(np.float64)
    every = distinct(pods["pod"].to_numpy()[(pods["row"] >= 0).to_numpy(dtype=bool)])
    soon = 1 - np.count_nonzero(waited > 5) / max(every, 1)
    caption = (
        f"{waited.size:,} of {every:,} pods found no node at first; half of those waited "
        f"{format_duration(float(np.median(waited)))} or more. {soon:.0%} of all pods waited less than 5 s."
    )
    early = floats(pods, "start_s")[mine] < _FIRST_S
    at, width = (edges[1:] + edges[:-1]) / 2 / unit.seconds, float(np.diff(edges)[0]) / unit.seconds * 0.95
    first = np.histogram(waited[early], bins=edges)[0].astype(np.float64)
    parts = [("in the first minute", first, "--accent"), ("later", counts - first, "--warn")]
    traces = [bars(name, at, part, of, width) for name, part, of in parts if part.any()]
    layout = {
        "xaxis": axis(f"{unit.name} without a node"), "yaxis": axis("pods"), "barmode": "stack",
        "showlegend": len(traces) > 1,
    }  # fmt: skip
    return figure("pending", "Pods waiting for room", caption, traces, layout, height=280)
