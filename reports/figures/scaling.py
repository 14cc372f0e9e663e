"""Does adding nodes help: throughput against nodes, with the law behind it."""

import numpy as np

from harness.analysis.capacity.scaling import Interval
from reports.figures.figure import Figure, axis, figure, line
from reports.report import Report
from reports.tables import amount_text

_NAMES = {"linear": "linear", "amdahl": "Amdahl's law", "usl": "the Universal Scalability Law"}
_POINTS = 60
_IN_SIGHT = 10  # times what was measured


def scaling(report: Report) -> Figure | None:
    """What each number of nodes achieved, the fitted law with its band, and perfect scaling beside it."""
    found, measured = report.scaling, report.progress
    if found is None or measured is None:
        return None
    x = np.linspace(1.0, 1.25 * found.fitted_on[1], _POINTS)
    low, high = found.band(x)
    traces = [
        {
            "type": "scatter", "mode": "lines", "name": "90% band", "fill": "toself", "fillcolor": "--wash",
            "x": np.concatenate((x, x[::-1])).tolist(), "y": np.concatenate((high, low[::-1])).tolist(),
            "line": {"width": 0, "color": "--wash"}, "hoverinfo": "skip",
        },
        line("one node's share for each", x, found.curve.gamma * x, "--quiet", dash="dash"),
        line(_NAMES[found.curve.law], x, found.curve.at(x), "--accent", width=2.5),
        {
            "type": "scatter", "mode": "markers", "name": "measured", "x": measured.nodes.tolist(),
            "y": measured.per_hour.tolist(), "marker": {"color": "--good", "size": 9},
        },
    ]  # fmt: skip
    top = 1.15 * float(max(high.max(), measured.per_hour.max()))
    layout = {"xaxis": axis("ready nodes", rangemode="tozero"), "yaxis": axis("runs per hour", range=[0, top])}
    caption = (
        f"{statement(report)} Each point is a while in which pods waited for room: the work that was done, in runs per "
        "hour. A pod counts by its usual time and by how much of a node it requests."
    )
    return figure("scaling", "Throughput against nodes", caption, traces, layout)


def statement(report: Report) -> str:
    """What the law says about more nodes, with its interval and the range it was fitted on."""
    found = report.scaling
    if found is None:
        return "This run shows too few different numbers of nodes to say what more of them would change."
    low, high = found.fitted_on
    where = f"Fitted on {low:.0f} to {high:.0f} nodes: {_NAMES[found.curve.law]}."
    if found.enough.value is None:
        return f"{where} Every node added as much as the one before it, {amount_text(found.curve.gamma)} runs an hour."
    if found.enough.value > _IN_SIGHT * high:
        each = f"on {high:.0f} nodes each gives {float(found.curve.efficiency(high)):.0%} of what one alone would"
        return f"{where} No limit is in sight: {each}."
    efficiency = float(found.curve.efficiency(high))
    beyond = f"Beyond {_text(found.enough)} nodes more of them change little"
    far = " (an extrapolation: beyond twice what was measured)" if found.enough.value > 2 * high else ""
    peak = found.peak.value
    falls = f", beyond {_text(found.peak)} throughput falls" if peak is not None and peak <= 2 * high else ""
    return f"{where} {beyond}{far}{falls}; on {high:.0f} nodes each gives {efficiency:.0%} of what one alone would."


def _text(interval: Interval) -> str:
    low = "?" if interval.low is None else f"{interval.low:.0f}"
    high = "many" if interval.high is None else f"{interval.high:.0f}"
    return f"{interval.value:.0f} ({low} to {high})"
