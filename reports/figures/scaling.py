"""Does adding nodes help: throughput by number of nodes, with the fitted law."""

import numpy as np

from harness.analysis.capacity.progress import progress
from harness.analysis.capacity.scaling import Interval, Scaling
from harness.analysis.result import Result
from reports.figures.figure import Figure, axis, figure, line
from reports.tables import amount_text

_NAMES = {"linear": "linear", "amdahl": "Amdahl's law", "usl": "the Universal Scalability Law"}
_IN_SIGHT = 10  # times what was measured
_POINTS = 60
_BEYOND = 1.25  # times the most nodes that were measured


def scaling(result: Result) -> Figure | None:
    """The throughput on each number of nodes, the fitted law with its band, and linear scaling."""
    found, measured = result.scaling, progress(result.timeline)
    if found is None or measured is None:
        return None
    curve, nodes = found.curve, np.linspace(1.0, _BEYOND * found.fitted_on[1], _POINTS)
    x, (low, high) = nodes.tolist(), (end.tolist() for end in found.band(nodes))
    traces = [
        {
            "type": "scatter", "mode": "lines", "name": "90% band", "fill": "toself", "fillcolor": "--wash",
            "x": x + x[::-1], "y": high + low[::-1], "line": {"width": 0, "color": "--wash"}, "hoverinfo": "skip",
        },
        *([line("linear scaling", x, curve.gamma * nodes, "--quiet", dash="dash")] if curve.law != "linear" else ()),
        line(f"fitted: {_NAMES[curve.law]}", x, curve.at(nodes), "--accent", width=2.5),
        {
            "type": "scatter", "mode": "markers", "name": "measured", "x": measured.nodes.tolist(),
            "y": measured.per_hour.tolist(), "marker": {"color": "--good", "size": 9},
        },
    ]  # fmt: skip
    top = 1.15 * float(max(*high, measured.per_hour.max()))
    layout = {"xaxis": axis("ready nodes", rangemode="tozero"), "yaxis": axis("runs per hour", range=[0, top])}
    caption = (
        f"{statement(found)} Each point is a window with pending pods: the work done in it, in runs per hour. "
        "A pod's share of a run is its usual duration times its requests."
    )
    return figure("scaling", "Throughput by number of nodes", caption, traces, layout)


def statement(found: Scaling) -> str:
    """The law's prediction for more nodes, with its interval and the range it was fitted on."""
    low, high = found.fitted_on
    where = f"Fitted on {low:.0f} to {high:.0f} nodes: {_NAMES[found.curve.law]}."
    if found.enough.value is None:
        return f"{where} Every node added {amount_text(found.curve.gamma)} runs/h."
    each = f"on {high:.0f} nodes each achieves {float(found.curve.efficiency(high)):.0%} of a single node's throughput"
    if found.enough.value > _IN_SIGHT * high:
        return f"{where} No limit is in sight: {each}."
    far = " (an extrapolation: beyond twice the measured range)" if found.enough.value > 2 * high else ""
    peak = found.peak.value
    falls = f"; beyond {_text(found.peak)} throughput falls" if peak is not None and peak <= 2 * high else ""
    return f"{where} Beyond {_text(found.enough)} nodes, more add little{far}{falls}; {each}."


def _text(interval: Interval) -> str:
    low = "?" if interval.low is None else f"{interval.low:.0f}"
    high = "many" if interval.high is None else f"{interval.high:.0f}"
    return f"{interval.value:.0f} ({low} to {high})"
