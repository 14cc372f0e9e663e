"""Throughput, requests and submissions over time."""

from harness.analysis.result import Result
from harness.model.units import counted, format_duration
from reports.figures.figure import FEW, Figure, axis, bars, figure, line, points, time_axis, unit_of
from reports.tables import amount_text, hosts_text

_LONG_S = 10.0  # latencies from here on are shown in seconds


def throughput(result: Result) -> Figure | None:
    """Throughput above, nodes and runs in flight below, on one time axis."""
    flow, peak = result.throughput, result.peak_nodes
    if not result.raw_rows.run_count:
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
    for requested in result.requested:
        noun = "core" if requested.resource == "CPU" else "GPU"
        traces = [
            line("allocatable on ready nodes", x, requested.room, "--accent", width=2.5, shape="hv"),
            line("requested by scheduled pods", x, requested.held, "--good", fill="tozeroy", fillcolor="--wash"),
        ]
        layout = {"xaxis": time_axis(unit), "yaxis": axis(f"{noun}s", rangemode="tozero")}
        queued = (requested.wanted - requested.held).clip(min=0.0)
        if queued.any():  # above, for a long queue would press the nodes' line to the bottom
            above = line("requested by pending pods", x, queued, "--warn", yaxis="y2", dash="dot")
            traces.append(above | {"fill": "tozeroy", "fillcolor": "--wash"})
            layout["yaxis"]["domain"] = [0.0, 0.56]
            layout["yaxis2"] = axis(f"{noun}s", domain=[0.66, 1.0], rangemode="tozero")
        charged = result.cost and (result.cost.gpu_hours if requested.resource == "GPU" else result.cost.cpu_hours)
        caption = (
            f"Scheduled pods requested {amount_text(requested.held_hours) or 'no'} {requested.resource}-hours"
            + (f" of {amount_text(charged)} charged" if charged else "")
            + f"; all pods requested up to {counted(round(float(requested.wanted.max())), noun)} at once. "
            "The gap between the nodes' line and the area is paid for but unused."
        )
        key = f"requests-{requested.resource.lower()}"
        made.append(figure(key, f"{requested.resource} requests and capacity", caption, traces, layout, height=340))
    return made


def submissions(result: Result) -> Figure | None:
    """Latency of each submission and the load generator's own lag, by due time."""
    found = result.submissions
    if found is None:
        return None
    unit = unit_of(found.last_due_s)
    across = 1.0 if found.at_once else unit.seconds
    name, factor = ("seconds", 1.0) if found.longest_s >= _LONG_S else ("milliseconds", 1000.0)
    traces = [
        points(label, series.x / across, series.y * factor, of, symbol)
        for label, series, of, symbol in (
            ("latency (due to answered)", found.latency, "--accent", "circle"),
            ("lag (due to sent)", found.lag, "--warn", "circle"),
            ("rejected", found.rejected, "--bad", "x"),
        )
        if label != "rejected" or series.x.size
    ]
    few = {"dtick": 1, "range": [-0.5, found.count - 0.5]} if found.count < FEW else {}
    layout = {
        "xaxis": axis("run, in order of arrival", **few) if found.at_once else time_axis(unit),
        "yaxis": axis(name, rangemode="tozero"),
    }
    lag = result.latencies.lag.at(0.99).value
    caption = (
        "Latency counts from when a run was due, so a slow response can't hide the arrivals behind it. "
        f"Lag, from due to sent, is the load generator's: p99 {'unknown' if lag is None else format_duration(lag)}."
    )
    if found.is_thinned:
        caption += f" The minimum and maximum of each interval are drawn, of {found.count:,} submissions."
    return figure("submissions", "Submit latency and lag", caption, traces, layout)


def stores(result: Result) -> list[Figure]:
    """Free space over time of each watched volume whose use changed, the fullest first."""
    made, unit = [], unit_of(result.end_s)
    for k, space in enumerate(result.free_space):
        volume = space.volume
        x, y = space.free.x / unit.seconds, space.free.y / 2**30
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
