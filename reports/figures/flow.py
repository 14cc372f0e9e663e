"""Throughput, requests and submissions over time."""

import numpy as np

from harness.analysis.cost.requested import requested
from harness.analysis.result import Result
from harness.analysis.services.volumes import volumes
from harness.analysis.timeline import floats
from harness.model.records import Outcome
from harness.model.units import counted, format_duration
from reports.figures.figure import FEW, Figure, axis, bars, figure, line, points, thinned, time_axis, unit_of
from reports.tables import amount_text, hosts_text

_LONG_S = 10.0  # latencies from here on are shown in seconds
_MIN_SHARE_WRITTEN = 0.01  # of a volume's capacity
_AT_ONCE_S = 1e-3


def throughput(result: Result) -> Figure | None:
    """Throughput above, nodes and runs in flight below, on one time axis."""
    flow, peak = result.throughput, result.peak_nodes
    if not len(result.timeline.runs):
        return None
    unit = unit_of(float(flow.edges_s[-1]))
    x, edges, each = flow.middles_s / unit.seconds, flow.edges_s / unit.seconds, format_duration(flow.width_s)
    width = flow.width_s / unit.seconds * 0.92
    traces = [
        bars("succeeded", x, flow.succeeded, "--good", width),
        *([bars("failed", x, flow.failed, "--bad", width)] if flow.failed.any() else ()),
        line("runs in flight", x, flow.in_flight, "--quiet", yaxis="y2", fill="tozeroy", fillcolor="--wash"),
    ]
    if flow.pending.any():
        traces.append(line("unschedulable pods", x, flow.pending, "--warn", yaxis="y2", dash="dot"))
    layout = {
        "barmode": "stack",
        "xaxis": time_axis(unit, anchor="y2" if peak is None else "y3"),
        "yaxis": axis(f"runs per {each.removeprefix('1 ')}", domain=[0.66, 1.0], rangemode="nonnegative"),
        "yaxis2": axis(
            "runs, pods" if flow.pending.any() else "runs", domain=[0.0, 0.56] if peak is None else [0.3, 0.6]
        ),
    }
    if peak is not None:
        steps = [*flow.nodes, flow.nodes[-1]]  # from the beginning of each window to its end
        traces.append(line("ready nodes", edges, steps, "--accent", yaxis="y3", width=2.5, shape="hv"))
        layout["yaxis3"] = axis("nodes", domain=[0.0, 0.24], rangemode="tozero", dtick=max(1, peak // 2))
    caption = (
        f"{flow.per_hour:,.0f} runs/h succeeded over the whole test, {hosts_text(result)}. "
        f"Bars count the runs that ended within {each}; lines are means of {each}."
    )
    title = "Throughput and runs in flight" if peak is None else "Throughput, runs in flight and nodes"
    return figure("throughput", title, caption, traces, layout, height=520)


def requests(result: Result) -> list[Figure]:
    """Resource requests of the pods, and what the nodes can allocate."""
    flow, made = result.throughput, []
    unit = unit_of(float(flow.edges_s[-1]))
    x = flow.middles_s / unit.seconds
    for resource in requested(result.timeline):
        noun = "core" if resource.resource == "CPU" else "GPU"
        traces = [
            line("allocatable on ready nodes", x, resource.room, "--accent", width=2.5, shape="hv"),
            line("requested by scheduled pods", x, resource.held, "--good", fill="tozeroy", fillcolor="--wash"),
        ]
        layout = {"xaxis": time_axis(unit), "yaxis": axis(f"{noun}s", rangemode="tozero")}
        queued = (resource.wanted - resource.held).clip(min=0.0)
        if queued.any():  # above, for a long queue would press the nodes' line to the bottom
            above = line("requested by pending pods", x, queued, "--warn", yaxis="y2", dash="dot")
            traces.append(above | {"fill": "tozeroy", "fillcolor": "--wash"})
            layout["yaxis"]["domain"] = [0.0, 0.56]
            layout["yaxis2"] = axis(f"{noun}s", domain=[0.66, 1.0], rangemode="tozero")
        charged = result.cost and (result.cost.gpu_hours if resource.resource == "GPU" else result.cost.cpu_hours)
        caption = (
            f"Scheduled pods requested {amount_text(resource.held_hours) or 'no'} {resource.resource}-hours"
            + (f" of {amount_text(charged)} charged" if charged else "")
            + f"; all pods requested up to {counted(round(float(resource.wanted.max())), noun)} at once. "
            "The gap between the nodes' line and the area is paid for but unused."
        )
        key = f"requests-{resource.resource.lower()}"
        made.append(figure(key, f"{resource.resource} requests and capacity", caption, traces, layout, height=340))
    return made


def submissions(result: Result) -> Figure | None:
    """Latency of each submission and the load generator's own lag, by due time, or by number if all were due at once.

    None without a load of ours, and when nothing was sent.
    """
    runs = result.timeline.runs
    due, sent, answered = (floats(runs, name) for name in ("due_s", "sent_s", "answered_s"))
    if result.observed or not np.isfinite(sent).any():
        return None
    latency, lag = answered - due, sent - due
    at_once = float(np.nanmax(due) - np.nanmin(due)) < _AT_ONCE_S
    unit, x = unit_of(float(np.nanmax(due))), floats(runs, "seq") if at_once else due
    refused = (runs["outcome"] == Outcome.REJECTED.value).to_numpy(dtype=bool)
    across = 1.0 if at_once else unit.seconds
    in_seconds = float(np.nanmax(np.fmax(latency, lag))) >= _LONG_S
    name, factor = ("seconds", 1.0) if in_seconds else ("milliseconds", 1000.0)
    shown = thinned(x, lag)
    traces = [
        points(label, at / across, seconds * factor, of, symbol)
        for label, (at, seconds), of, symbol in (
            ("latency (due to answered)", thinned(x, latency), "--accent", "circle"),
            ("lag (due to sent)", shown, "--warn", "circle"),
            ("rejected", thinned(x[refused], lag[refused]), "--bad", "x"),
        )
        if label != "rejected" or at.size
    ]
    few = {"dtick": 1, "range": [-0.5, len(runs) - 0.5]} if len(runs) < FEW else {}
    layout = {
        "xaxis": axis("run, in order of arrival", **few) if at_once else time_axis(unit),
        "yaxis": axis(name, rangemode="tozero"),
    }
    p99 = result.latencies.lag.at(0.99).value
    caption = (
        "Latency counts from when a run was due, so a slow response can't hide the arrivals behind it. "
        f"Lag, from due to sent, is the load generator's: p99 {'unknown' if p99 is None else format_duration(p99)}."
    )
    if shown[0].size < len(runs):
        caption += f" The minimum and maximum of each interval are drawn, of {len(runs):,} submissions."
    return figure("submissions", "Submit latency and lag", caption, traces, layout)


def stores(result: Result) -> list[Figure]:
    """Free space over time of each watched volume whose use changed, the fullest first."""
    made, unit = [], unit_of(result.timeline.end_s)
    changed = (v for v in volumes(result.timeline) if v.full or float(np.ptp(v.free)) > _MIN_SHARE_WRITTEN * v.capacity)
    for k, volume in enumerate(sorted(changed, key=lambda v: v.least / v.capacity)):
        at_s, free = thinned(volume.at_s, volume.free)
        x, y = at_s / unit.seconds, free / 2**30
        traces = [
            line("free", x, y, "--accent", fill="tozeroy", fillcolor="--wash"),
            line("capacity", x[[0, -1]], [volume.capacity / 2**30] * 2, "--quiet", dash="dash"),
        ]
        layout = {"xaxis": time_axis(unit), "yaxis": axis("GiB", rangemode="tozero")}
        state = f"at least {volume.least / 2**30:.2f} GiB free throughout"
        if volume.nearly_full_s is not None:
            state = f"full {format_duration(volume.nearly_full_s)} into the test"
        caption = f"{volume.name}: {volume.capacity / 2**30:.1f} GiB, {state}."
        made.append(figure(f"store-{k}", f"Free space on {volume.name}", caption, traces, layout, height=260))
    return made
