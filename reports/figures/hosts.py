"""Single nodes over time: the pods on each and how many of them work; the same for replicas of a service."""

from itertools import pairwise

from harness.analysis.result import Placement, Result
from harness.model.phases import POD_PHASES
from harness.model.units import format_duration
from reports.figures.figure import Figure, Trace, Unit, axis, figure, marks, spans, time_axis, unit_of
from reports.figures.phases import color


def _nouns(result: Result) -> tuple[str, str, str]:
    """Names of a host, of what it carries, and of what works there."""
    return ("node", "pods", "steps") if result.workers is None else ("replica", "executions", "executions")


def work(result: Result) -> Figure | None:
    """Mean number of steps at work on each node, or of executions on each replica, over time."""
    host_work, flow = result.host_work, result.throughput
    if host_work is None:
        return None
    unit, most = unit_of(float(flow.edges_s[-1])), float(host_work.mean.max())
    noun, _, working = _nouns(result)
    trace = {
        "type": "heatmap", "x": (flow.middles_s / unit.seconds).tolist(), "y": _short(host_work.names),
        "z": host_work.mean.tolist(), "zmin": 0, "zmax": most, "colorscale": [[0, "--wash"], [1, "--accent"]],
        "xgap": 1, "ygap": 2, "colorbar": {"thickness": 10, "outlinewidth": 0}, "name": f"running {working}",
        "hovertemplate": "%{y}: %{z:.1f} " + working + "<extra></extra>",
    }  # fmt: skip
    layout = {
        "xaxis": time_axis(unit, showgrid=False),
        "yaxis": axis("", autorange="reversed", showgrid=False, type="category"),
        "showlegend": False,
    }
    shown = len(host_work.names)
    which = "" if shown == host_work.hosts else f" {shown} of {host_work.hosts:,} {noun}s, evenly chosen."
    order = "" if result.workers is not None else ", oldest on top"
    caption = (
        f"Running {working} per {noun}{order}; means of {format_duration(flow.width_s)}, at most {most:.1f}.{which}"
    )
    return figure("work", f"Load per {noun}", caption, [trace], layout, height=max(200, 20 * shown + 90))


def pods(result: Result) -> Figure | None:
    """Some pods on some nodes, or executions on replicas, as bars on lanes grouped by node."""
    placement = result.placement
    if placement is None:
        return None
    noun, carried, _ = _nouns(result)
    unit, top = unit_of(result.end_s), placement.first_lane.tolist()
    middle = (placement.first_lane[:-1] + placement.first_lane[1:] - 1) / 2
    width = {"width": [high - low - 0.12 for low, high in pairwise(top)], "hoverinfo": "skip"}
    traces = [
        spans(f"{noun} ready", middle, placement.ready_s, placement.gone_s, "--wash", unit, **width),
        *_phase_bars(placement, unit),
        *(
            marks(name, lost.lane, lost.at_s, of, unit, symbol)
            for name, lost, of, symbol in (
                ("failed", placement.failed, "--bad", "x"),
                ("evicted or lost with its node", placement.taken, "--ink", "diamond"),
            )
            if lost.lane.size
        ),
    ]
    layout = {
        "barmode": "overlay",
        "xaxis": time_axis(unit),
        "yaxis": axis(
            "", range=[top[-1] - 0.3, -0.7], tickvals=middle.tolist(), ticktext=_short(placement.names),
            showgrid=False, zeroline=False,
        ),
    }  # fmt: skip
    height = max(260, (9 if top[-1] > 40 else 14) * top[-1] + 90)
    title = f"{carried.capitalize()} by {noun}"
    return figure("pods", title, _caption(placement, noun, carried), traces, layout, height=height)


def _phase_bars(found: Placement, unit: Unit) -> list[Trace]:
    traces = []
    texts = [f"{task or 'execution'} of run {seq}" for task, seq in zip(found.task, found.seq.tolist(), strict=True)]
    for k, phase in enumerate(POD_PHASES):
        mine, of = found.phase == k, color(phase)
        if mine.any():
            more = {
                # The outline keeps short bars visible next to the whole test.
                "marker": {"color": of, "line": {"width": 0.5, "color": of}},
                "text": [text for text, chosen in zip(texts, mine.tolist(), strict=True) if chosen],
                "textposition": "none",
                "hovertemplate": f"%{{text}}: %{{x:.4g}} {unit.sign}<extra>{phase}</extra>",
            }
            bars = spans(phase, found.lane[mine], found.start_s[mine], found.end_s[mine], of, unit, **more)
            traces.append(bars)
    return traces


def _caption(found: Placement, noun: str, carried: str) -> str:
    shown, order = len(found.names), ", oldest on top" if noun == "node" else ""
    which = f"{shown} of {found.hosts:,} {noun}s, from the busiest to the idlest" if shown < found.hosts else ""
    some = f"all {found.pods:,} {carried}" if found.all_runs else f"{found.pods:,} {carried} of evenly chosen runs"
    return f"{which or f'All {noun}s'}{order}, with {some}."


def _short(names: tuple[str, ...]) -> list[str]:
    """Names without the beginning they share up to its last dash, as long as they stay distinct."""
    shared = 0
    if len(names) > 1:
        same = next((k for k, letters in enumerate(zip(*names, strict=False)) if len(set(letters)) > 1), 0)
        shared = names[0].rfind("-", 0, same) + 1
    return [f"…{name[shared:]}" if shared else name for name in names]
