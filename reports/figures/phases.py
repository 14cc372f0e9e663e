"""Where the time went: phases of the runs, and how long pods waited."""

from harness.analysis.result import Result
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
    SERVING,
    STARTING,
    STORING,
    SUBMIT,
    UNKNOWN,
    UNSCHEDULABLE,
)
from harness.model.units import counted, format_duration
from reports.figures.figure import Figure, Trace, axis, bars, figure, unit_of

_NOTABLE = 1e-3  # of the mean duration

MEANINGS = {
    DISPATCH: "runs waited for the load generator",
    SUBMIT: "runs waited for the API to accept them",
    CONTROLLER: "runs waited for the controller to create their next pod",
    UNSCHEDULABLE: "pods waited for room on a node",
    PROVISIONING: "pods waited for a new node to become ready",
    SCHEDULING: "pods waited for the scheduler",
    PULLING: "images were pulled",
    STARTING: "containers started",
    RUNNING: "steps ran",
    STORING: "outputs were stored",
    SERVING: "pods served others, and nothing was computed",
    NETWORK: "requests and responses were in transit",
    BACKEND: "executions waited for the backend to prepare them",
    QUEUED: "executions waited for a worker of the runtime",
    LOADING: "data was loaded from adapters",
    COMPUTING: "operators computed",
    SENDING: "data was sent to adapters",
    PUBLISHING: "runs had finished and the platform had not reported it yet",
    UNKNOWN: "no pods were observed, so the cause is unknown",
}


def color(phase: str) -> str:
    """The CSS variable of a phase's colour."""
    return f"--phase-{phase.replace(' ', '-')}"


def phases(result: Result) -> Figure | None:
    """Mean seconds by phase: of all runs, of typical ones and of slow ones."""
    phase_breakdown = result.phases
    if not phase_breakdown.runs:
        return None
    unit = unit_of(phase_breakdown.longest_s)
    groups = phase_breakdown.groups[::-1]  # the first one is drawn at the bottom
    traces: list[Trace] = [
        {
            "type": "bar", "orientation": "h", "name": phase, "y": [group.name for group in groups],
            "x": [float(group.mean_s[k]) / unit.seconds for group in groups],
            "marker": {"color": color(phase)}, "hovertemplate": f"%{{x:.4g}} {unit.sign}<extra>{phase}</extra>",
        }
        for k, phase in enumerate(RUN_PHASES)
        if any(abs(group.mean_s[k]) > _NOTABLE * phase_breakdown.mean_total_s for group in groups)
    ]  # fmt: skip
    layout = {"barmode": "relative", "xaxis": axis(f"{unit.name} from due to end"), "yaxis": axis("", automargin=True)}
    top = max(phase_breakdown.phases, key=lambda phase: phase.share)
    caption = (
        f"{top.share:.0%} of the runs' time: {MEANINGS[top.name]} ({top.name}). "
        "The phases of a run add up to its duration."
    )
    if any(x < 0 for trace in traces for x in trace["x"]):
        caption += " Negative values come from timestamps in whole seconds."
    return figure("phases", "Run duration by phase", caption, traces, layout, height=300)


def phases_by_order(result: Result) -> Figure | None:
    """Mean seconds by phase in order of arrival: what grows under load."""
    phases_by_arrival = result.phases.by_arrival
    if phases_by_arrival is None:
        return None
    unit = unit_of(phases_by_arrival.longest_s)
    traces = [
        bars(
            phase,
            phases_by_arrival.seq,
            phases_by_arrival.mean_s[:, k] / unit.seconds,
            color(phase),
            0.92 * phases_by_arrival.size,
        )
        | {"hovertemplate": f"%{{y:.4g}} {unit.sign}<extra>{phase}</extra>"}
        for k, phase in enumerate(RUN_PHASES)
        if (abs(phases_by_arrival.mean_s[:, k]) > _NOTABLE * result.phases.mean_total_s).any()
    ]
    layout = {
        "barmode": "relative", "showlegend": False,
        "xaxis": axis("run, in order of arrival"), "yaxis": axis(f"mean {unit.name}"),
    }  # fmt: skip
    caption = (
        "The same phases in order of arrival: what grows from left to right is the queue. "
        f"Each bar is the mean of {counted(phases_by_arrival.size, 'run')}."
    )
    trend = result.degradation
    if trend is not None and trend.grows:
        caption += f" Each further run took {trend.slope:.2g} s longer ({trend.low:.2g} to {trend.high:.2g} s)."
    return figure("phases-by-order", "Run duration by order of arrival", caption, traces, layout, height=300)


def pending(result: Result) -> Figure | None:
    """A histogram of the time that pods waited for a node."""
    pending_pods = result.pending_pods
    if pending_pods is None:
        return None
    unit = unit_of(pending_pods.longest_s)
    caption = (
        f"{pending_pods.waited:,} of {pending_pods.pods:,} pods found no node at first; median wait of those "
        f"{format_duration(pending_pods.median_s)}. {pending_pods.soon:.0%} of all pods waited less than 5 s. "
        f"Each bar is {format_duration(float(pending_pods.edges_s[1] - pending_pods.edges_s[0]))} wide."
    )
    edges = pending_pods.edges_s / unit.seconds
    at, width = (edges[1:] + edges[:-1]) / 2, float(edges[1] - edges[0]) * 0.95
    parts = (
        ("pending since the first minute", pending_pods.early, "--accent"),
        ("pending since a later time", pending_pods.later, "--warn"),
    )
    traces = [bars(name, at, part, of, width) for name, part, of in parts if part.any()]
    layout = {
        "xaxis": axis(f"{unit.name} unschedulable"), "yaxis": axis("pods"), "barmode": "stack",
        "showlegend": len(traces) > 1,
    }  # fmt: skip
    return figure("pending", "Pending pods", caption, traces, layout, height=280)
