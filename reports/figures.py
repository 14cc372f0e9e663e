"""The report's figures as Plotly descriptions.

Colours are names of the page's CSS variables ("--good"); the page resolves them, so that light, dark and print each get
their own. Long series are thinned honestly: the least and the greatest of each stretch stay.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from harness.analysis.timeline import Floats, floats
from harness.model.phases import (
    CONTROLLER,
    DISPATCH,
    POD_PHASES,
    PROVISIONING,
    PUBLISHING,
    PULLING,
    RUN_PHASES,
    RUNNING,
    SCHEDULING,
    STARTING,
    STORING,
    SUBMIT,
    UNKNOWN,
    UNSCHEDULABLE,
)
from reports.document import tidy
from reports.report import Report

_MOST_POINTS = 1500
_BARS = 60
_NOTABLE = 0.01
Trace = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure with the words that carry it. `key` is its element's id; `spec` has Plotly's `data` and `layout`."""

    key: str
    title: str
    caption: str
    spec: dict[str, Any]
    height: int = 340

    @property
    def legend(self) -> list[tuple[str, str]]:
        """(name, CSS variable) of each series; the page sets it as text, where it can wrap and be read aloud."""
        if self.spec["layout"].get("showlegend") is False:
            return []
        named = ((t["name"], t.get("marker", t.get("line", {})).get("color")) for t in self.spec["data"])
        return [(name, of) for name, of in named if of]


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
    PUBLISHING: "runs were done and the platform did not say so yet",
    UNKNOWN: "no pods were observed, so nobody knows",
}


def color(phase: str) -> str:
    """The CSS variable of a phase's colour."""
    return f"--phase-{phase.replace(' ', '-')}"


def figures(report: Report) -> dict[str, Figure]:
    """All figures that the recorded sources allow, by key."""
    made = (throughput(report), phases(report), phases_by_order(report), submissions(report), pending(report))
    return {figure.key: figure for figure in (*made, *stores(report)) if figure is not None}


def throughput(report: Report) -> Figure | None:
    """Throughput above, nodes and runs in flight below, on one time axis."""
    flow = report.throughput
    if not len(report.timeline.runs):
        return None
    x, per_hour = flow.middles_s, 3600 / flow.width_s
    width = flow.width_s * 0.92
    traces = [
        _bars("succeeded", x, flow.succeeded * per_hour, "--good", width),
        _bars("failed", x, flow.failed * per_hour, "--bad", width),
        _line("runs in flight", x, flow.in_flight, "--quiet", yaxis="y2", fill="tozeroy", fillcolor="--wash"),
        _line("pods waiting for room", x, flow.pending, "--warn", yaxis="y2", dash="dot"),
    ]
    watched = bool(np.isfinite(flow.nodes).any())
    if watched:
        traces.append(_line("ready nodes", x, flow.nodes, "--accent", yaxis="y3", width=2.5, shape="hv"))
    layout = {
        "barmode": "stack",
        "xaxis": _time_axis(anchor="y3" if watched else "y2"),
        "yaxis": _axis("runs per hour", domain=[0.66, 1.0]),
        "yaxis2": _axis("runs, pods", domain=[0.3, 0.6] if watched else [0.0, 0.56]),
        "yaxis3": _axis("ready nodes", domain=[0.0, 0.24], rangemode="tozero"),
    }
    if not watched:
        del layout["yaxis3"]
    nodes = f"up to {report.peak_nodes} nodes" if watched else "no nodes were observed"
    caption = (
        f"{flow.per_hour:,.0f} runs succeeded per hour over the whole test, {nodes}. "
        f"Counted in windows of {flow.width_s:g} s."
    )
    return _figure("throughput", "Throughput beside nodes", caption, traces, layout, height=520)


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
    traces = []
    for k, phase in enumerate(RUN_PHASES):
        means = [float(split.seconds[rows[label], k].mean()) for label in labels]
        if any(abs(mean) > 1e-3 * float(split.total.mean()) for mean in means):
            traces.append({
                "type": "bar", "orientation": "h", "name": phase, "y": labels, "x": means,
                "marker": {"color": color(phase)}, "hovertemplate": "%{x:.2f} s<extra>" + phase + "</extra>",
            })  # fmt: skip
    layout = {"barmode": "relative", "xaxis": _axis("seconds from due to over"), "yaxis": _axis("", automargin=True)}
    top = max(split.shares().items(), key=lambda item: item[1])
    caption = (
        f"{top[1]:.0%} of the runs' time: {MEANINGS[top[0]]} ({top[0]}). "
        "The phases of a run add up to its whole duration."
    )
    return _figure("phases", "Phase by phase", caption, traces, layout, height=300)


def phases_by_order(report: Report) -> Figure | None:
    """Mean seconds by phase over the order of arrival: what grows as the load goes on."""
    split = report.waits
    if split.row.size < 4:
        return None
    size = -(-split.row.size // _BARS)
    groups = [np.arange(low, min(low + size, split.row.size)) for low in range(0, split.row.size, size)]
    seq = floats(report.timeline.runs, "seq")[split.row]
    x = [float(seq[g].mean()) for g in groups]
    width = 0.9 * float(np.ptp(seq)) / max(len(groups) - 1, 1) if len(groups) > 1 else 1.0
    traces = []
    for k, phase in enumerate(RUN_PHASES):
        means = [float(split.seconds[g, k].mean()) for g in groups]
        if any(abs(mean) > 1e-3 * float(split.total.mean()) for mean in means):
            traces.append({
                "type": "bar", "name": phase, "x": x, "y": means, "width": width, "marker": {"color": color(phase)},
                "hovertemplate": "%{y:.2f} s<extra>" + phase + "</extra>",
            })  # fmt: skip
    layout = {
        "barmode": "relative", "showlegend": False,
        "xaxis": _axis("run, in the order of arrival"), "yaxis": _axis("mean seconds"),
    }  # fmt: skip
    caption = "The same phases in the order of arrival: what grows from left to right is what the load waits for."
    return _figure("phases-by-order", "How the waits grow", caption, traces, layout, height=300)


def submissions(report: Report) -> Figure | None:
    """Latency of each submission and the generator's own lag, over the due time's order."""
    runs = report.timeline.runs
    due, sent, answered = (floats(runs, name) for name in ("due_s", "sent_s", "answered_s"))
    if not np.isfinite(sent).any():
        return None
    at_once = float(np.nanmax(due) - np.nanmin(due)) < 1e-3
    x = floats(runs, "seq") if at_once else due
    traces = [
        _points("latency (due to answered)", x, 1000 * (answered - due), "--accent"),
        _points("lag (due to sent)", x, 1000 * (sent - due), "--warn"),
    ]
    refused = (runs["outcome"] == "rejected").to_numpy(dtype=bool) & np.isfinite(sent)
    if refused.any():
        traces.append(_points("rejected", x[refused], 1000 * (sent - due)[refused], "--bad", symbol="x"))
    layout = {
        "xaxis": _axis("run, in the order of arrival") if at_once else _time_axis(),
        "yaxis": _axis("milliseconds", rangemode="tozero"),
    }
    lag = report.diagnosis.validity.figures.get("lag_p99_s", 0.0)
    caption = (
        "Latency counts from when a run was due, so a slow answer can't hide the arrivals behind it. "
        f"The generator's own lateness: p99 {1000 * lag:.1f} ms."
    )
    return _figure("submissions", "Submissions: latency and lag", caption, traces, layout)


def pending(report: Report) -> Figure | None:
    """How long pods waited for room on a node."""
    pods = report.timeline.pods
    mine = (pods["phase"] == POD_PHASES.index(UNSCHEDULABLE)).to_numpy(dtype=bool)
    end = floats(pods, "end_s")[mine]
    waited = np.where(np.isfinite(end), end, report.timeline.end_s) - floats(pods, "start_s")[mine]
    if not waited.size:
        return None
    edges = np.linspace(min(0.0, float(waited.min())), float(waited.max()) * (1 + 1e-9) + 1e-9, 41)
    counts = np.histogram(waited, bins=edges)[0].astype(np.float64)
    every = int(pods["step"].nunique())
    soon = 1 - np.count_nonzero(waited > 5) / max(every, 1)
    caption = (
        f"{waited.size:,} of {every:,} pods found no node at first; half of those waited {np.median(waited):.1f} s "
        "or more. "
        f"{soon:.0%} of all pods waited less than 5 s."
    )
    traces = [_bars("pods", (edges[1:] + edges[:-1]) / 2, counts, "--warn", float(np.diff(edges)[0]) * 0.95)]
    layout = {"xaxis": _axis("seconds without a node"), "yaxis": _axis("pods"), "showlegend": False}
    return _figure("pending", "Pods waiting for room", caption, traces, layout, height=280)


def stores(report: Report) -> list[Figure]:
    """Free space over time of each watched volume whose use changed, the fullest first."""
    made = []
    changed = (v for v in report.volumes if v.full or float(np.ptp(v.free)) > _NOTABLE * v.capacity)
    for k, volume in enumerate(sorted(changed, key=lambda v: v.least / v.capacity)):
        x, y = thinned(volume.at_s, volume.free / 2**30)
        traces = [_line("free", x, y, "--accent", fill="tozeroy", fillcolor="--wash")]
        traces.append(_line("capacity", x[[0, -1]], np.full(2, volume.capacity / 2**30), "--quiet", dash="dash"))
        layout = {"xaxis": _time_axis(), "yaxis": _axis("GiB", rangemode="tozero")}
        said = f"at least {volume.least / 2**30:.2f} GiB stayed free"
        if volume.nearly_full_s is not None:
            said = f"full {volume.nearly_full_s:.0f} s into the test"
        caption = f"{volume.name}: {volume.capacity / 2**30:.1f} GiB, {said}."
        made.append(_figure(f"store-{k}", f"Space on {volume.name}", caption, traces, layout, height=260))
    return made


def thinned(x: Floats, y: Floats, most: int = _MOST_POINTS) -> tuple[Floats, Floats]:
    """At most `most` points: of each stretch the least and the greatest, in their order."""
    known = np.isfinite(x) & np.isfinite(y)
    x, y = x[known], y[known]
    if x.size <= most:
        return x, y
    bounds = np.linspace(0, x.size, most // 2 + 1).astype(int)
    keep: set[int] = {0, x.size - 1}
    for low, high in pairwise(bounds.tolist()):
        stretch = y[low:high]
        keep |= {low + int(stretch.argmin()), low + int(stretch.argmax())}
    chosen = np.array(sorted(keep))
    return x[chosen], y[chosen]


def _bars(name: str, x: Floats, y: Floats, of: str, width: float) -> Trace:
    return {
        "type": "bar", "name": name, "x": x.tolist(), "y": y.tolist(), "width": width,
        "marker": {"color": of, "line": {"width": 0}},
    }  # fmt: skip


def _line(
    name: str, x: Floats, y: Floats, of: str, *, yaxis: str = "y", width: float = 1.5, dash: str = "solid",
    shape: str = "linear", **more: object,
) -> Trace:  # fmt: skip
    x, y = thinned(x, y)
    line = {"color": of, "width": width, "dash": dash, "shape": shape}
    return {
        "type": "scatter", "mode": "lines", "name": name, "x": x.tolist(), "y": y.tolist(), "yaxis": yaxis,
        "line": line, **more,
    }  # fmt: skip


def _points(name: str, x: Floats, y: Floats, of: str, symbol: str = "circle") -> Trace:
    x, y = thinned(x, y)
    return {
        "type": "scatter", "mode": "markers", "name": name, "x": x.tolist(), "y": y.tolist(),
        "marker": {"color": of, "size": 4, "symbol": symbol, "opacity": 0.75},
    }  # fmt: skip


def _axis(title: str, **more: object) -> dict[str, Any]:
    return {"title": {"text": title, "standoff": 8}, **more}


def _time_axis(**more: object) -> dict[str, Any]:
    return _axis("seconds after the start", rangemode="tozero", **more)


def _figure(
    key: str, title: str, caption: str, traces: list[Trace], layout: dict[str, Any], *, height: int = 340
) -> Figure:
    spec = tidy({"data": traces, "layout": layout})
    return Figure(key, title, caption, spec, height)
