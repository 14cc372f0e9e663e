"""Upper bounds on throughput by the operational laws: no part can do more than one over its demand.

    X <= min over the parts of  servers / D      (Denning and Buzen 1978; Lazowska et al. 1984, chapter 5)

D is the time one run needs of a part. The part with the smallest bound binds, however much the others are enlarged.
"""

from dataclasses import dataclass

import numpy as np

from harness.analysis.acceptance import acceptance
from harness.analysis.curves import peak
from harness.analysis.throughput import throughput
from harness.analysis.timeline import Timeline, floats
from harness.model.phases import POD_PHASES, SCHEDULING, UNSCHEDULABLE


@dataclass(frozen=True, slots=True)
class Bound:
    """What one part could carry at most.

    Attributes:
        part: "API server" or "nodes".
        per_hour: runs per hour.
        demand_s: seconds of one server of this part that a run needs.
        servers: how many there were: the API's one bucket, the pods that fit on the nodes at once.
        utilisation: the measured throughput of all runs as a share of `per_hour`.
        how: what it was taken from.
    """

    part: str
    per_hour: float
    demand_s: float
    servers: float
    utilisation: float
    how: str


def bounds(timeline: Timeline) -> tuple[Bound, ...]:
    """The bounds that this run shows, the smallest first; a part that was never at its limit is not among them."""
    measured = throughput(timeline).over_per_hour
    found = [bound for bound in (_api(timeline, measured), _nodes(timeline, measured)) if bound is not None]
    return tuple(sorted(found, key=lambda bound: bound.per_hour))


def _api(timeline: Timeline, measured: float) -> Bound | None:
    flow = acceptance(timeline)
    if flow is None:
        return None
    per_hour = 3600 * flow.rate
    how = f"{flow.count:,} answers in a row while submissions queued"
    return Bound("API server", per_hour, 1 / flow.rate, 1.0, measured / per_hour, how)


def _nodes(timeline: Timeline, measured: float) -> Bound | None:
    """Only where pods waited for room: otherwise the nodes were never seen at their limit."""
    pods = timeline.pods
    if not len(timeline.stretches(UNSCHEDULABLE)) or not timeline.is_over.any():
        return None
    waiting = pods["phase"].isin([POD_PHASES.index(UNSCHEDULABLE), POD_PHASES.index(SCHEDULING)]).to_numpy(dtype=bool)
    on_node = ~waiting & (pods["row"] >= 0).to_numpy(dtype=bool)
    start, end = floats(pods, "start_s")[on_node], floats(pods, "end_s")[on_node]
    end = np.where(np.isfinite(end), end, timeline.end_s)
    if not start.size:
        return None
    demand = float((end - start).sum()) / int(timeline.is_over.sum())
    places = float(peak(start, end))
    per_hour = 3600 * places / demand if demand > 0 else np.inf
    how = f"{places:.0f} pods ran at once at most, and a run needs {demand:.1f} pod-seconds"
    return Bound("nodes", per_hour, demand, places, measured / per_hour, how)
