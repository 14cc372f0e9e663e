"""What came in, what came out, and on how many nodes, over time."""

import numpy as np

from harness.analysis.cost.requested import requested
from harness.analysis.timeline import floats
from harness.model.units import counted, format_duration
from reports.figures.figure import (
    FEW,
    MOST_POINTS,
    Figure,
    axis,
    bars,
    figure,
    line,
    points,
    thinned,
    time_axis,
    unit_of,
)
from reports.report import Report
from reports.tables import amount_text

_NOTABLE = 0.01
_LONG_S = 10.0  # latencies from here on are told in seconds


def throughput(report: Report) -> Figure | None:
    """Throughput above, nodes and runs in flight below, on one time axis."""
    flow = report.throughput
    if not len(report.timeline.runs):
        return None
    unit = unit_of(float(flow.edges_s[-1]))
    x, per_hour = flow.middles_s / unit.seconds, 3600 / flow.width_s
    width = flow.width_s / unit.seconds * 0.92
    traces = [
        bars("succeeded", x, flow.succeeded * per_hour, "--good", width),
        *([bars("failed", x, flow.failed * per_hour, "--bad", width)] if flow.failed.any() else ()),
        line("runs in flight", x, flow.in_flight, "--quiet", yaxis="y2", fill="tozeroy", fillcolor="--wash"),
    ]
    if flow.pending.any():
        traces.append(line("pods waiting for room", x, flow.pending, "--warn", yaxis="y2", dash="dot"))
    watched = bool(np.isfinite(flow.nodes).any())
    if watched:
        traces.append(line("ready nodes", x, flow.nodes, "--accent", yaxis="y3", width=2.5, shape="hv"))
    layout = {
        "barmode": "stack",
        "xaxis": time_axis(unit, anchor="y3" if watched else "y2"),
        "yaxis": axis("runs per hour", domain=[0.66, 1.0], rangemode="nonnegative"),
        "yaxis2": axis("runs, pods" if flow.pending.any() else "runs", domain=[0.3, 0.6] if watched else [0.0, 0.56]),
        "yaxis3": axis(
            "ready nodes", domain=[0.0, 0.24], rangemode="tozero", dtick=max(1, (report.peak_nodes or 0) // 2)
        ),
    }
    if not watched:
        del layout["yaxis3"]
    if report.workers is not None:
        machines = f"by {len(report.workers.workers)} replicas"
    else:
        machines = f"on up to {report.peak_nodes} nodes" if watched else "on nodes that were not observed"
    caption = (
        f"{flow.per_hour:,.0f} runs succeeded per hour over the whole test, {machines}. "
        f"Counted in windows of {format_duration(flow.width_s)}."
    )
    return figure(
        "throughput",
        "Throughput beside nodes" if watched else "Throughput beside runs in flight",
        caption,
        traces,
        layout,
        height=520,
    )


def requests(report: Report) -> list[Figure]:
    """What pods requested beside what the nodes had to give."""
    flow, made = report.throughput, []
    unit = unit_of(float(flow.edges_s[-1]))
    x = flow.middles_s / unit.seconds
    for found in requested(report.timeline):
        what = "core" if found.resource == "CPU" else "GPU"
        traces = [
            line(f"{what}s of ready nodes", x, found.room, "--accent", width=2.5, shape="hv"),
            line("requested by all pods", x, found.wanted, "--warn", dash="dot"),
            line("requested by pods on nodes", x, found.held, "--good", fill="tozeroy", fillcolor="--wash"),
        ]
        # A long queue would press the nodes' line to the bottom.
        room, most = float(found.room.max()), float(found.wanted.max())
        top = 1.05 * max(room, min(most, 3 * room))
        layout = {"xaxis": time_axis(unit), "yaxis": axis(f"{what}s", range=[0, top])}
        charged = report.cost and (report.cost.gpu_hours if found.resource == "GPU" else report.cost.cpu_hours)
        caption = (
            f"Pods held {amount_text(found.held_hours) or 'no'} {found.resource}-hours"
            + (f" of {amount_text(charged)} that the nodes were there for" if charged else "")
            + f", and all pods asked for up to {counted(round(most), what)} at once. Where the dotted line is "
            "above the nodes' line, pods wait; the space between the nodes' line and the area is paid for and not used."
        )
        key = f"requests-{found.resource.lower()}"
        made.append(figure(key, f"{found.resource}: nodes against requests", caption, traces, layout, height=280))
    return made


def submissions(report: Report) -> Figure | None:
    """Latency of each submission and the generator's own lag, over the due time's order."""
    runs = report.timeline.runs
    due, sent, answered = (floats(runs, name) for name in ("due_s", "sent_s", "answered_s"))
    if report.observed or not np.isfinite(sent).any():
        return None
    at_once = float(np.nanmax(due) - np.nanmin(due)) < 1e-3
    unit = unit_of(float(np.nanmax(due)))
    x = floats(runs, "seq") if at_once else due / unit.seconds
    latency, lag = answered - due, sent - due
    name, factor = ("seconds", 1.0) if np.nanmax(np.fmax(latency, lag)) >= _LONG_S else ("milliseconds", 1000.0)
    traces = [
        points("latency (due to answered)", x, factor * latency, "--accent"),
        points("lag (due to sent)", x, factor * lag, "--warn"),
    ]
    refused = (runs["outcome"] == "rejected").to_numpy(dtype=bool) & np.isfinite(sent)
    if refused.any():
        traces.append(points("rejected", x[refused], factor * lag[refused], "--bad", symbol="x"))
    few = {"dtick": 1, "range": [-0.5, x.size - 0.5]} if x.size < FEW else {}
    layout = {
        "xaxis": axis("run, in the order of arrival", **few) if at_once else time_axis(unit),
        "yaxis": axis(name, rangemode="tozero"),
    }
    late = report.diagnosis.validity.figures.get("lag_p99_s", 0.0)
    caption = (
        "Latency counts from when a run was due, so a slow answer can't hide the arrivals behind it. "
        f"The generator's own lateness: p99 {format_duration(late)}."
    )
    if x.size > MOST_POINTS:
        caption += f" Of {x.size:,} submissions the fastest and the slowest of each stretch are drawn."
    return figure("submissions", "Submissions: latency and lag", caption, traces, layout)


def stores(report: Report) -> list[Figure]:
    """Free space over time of each watched volume whose use changed, the fullest first."""
    made, unit = [], unit_of(report.timeline.end_s)
    changed = (v for v in report.volumes if v.full or float(np.ptp(v.free)) > _NOTABLE * v.capacity)
    for k, volume in enumerate(sorted(changed, key=lambda v: v.least / v.capacity)):
        x, y = thinned(volume.at_s / unit.seconds, volume.free / 2**30)
        traces = [line("free", x, y, "--accent", fill="tozeroy", fillcolor="--wash")]
        traces.append(line("capacity", x[[0, -1]], np.full(2, volume.capacity / 2**30), "--quiet", dash="dash"))
        layout = {"xaxis": time_axis(unit), "yaxis": axis("GiB", rangemode="tozero")}
        said = f"at least {volume.least / 2**30:.2f} GiB stayed free"
        if volume.nearly_full_s is not None:
            said = f"nearly full {format_duration(volume.nearly_full_s)} into the test"
        caption = f"{volume.name}: {volume.capacity / 2**30:.1f} GiB, {said}."
        made.append(figure(f"store-{k}", f"Space on {volume.name}", caption, traces, layout, height=260))
    return made
