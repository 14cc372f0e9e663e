"""Throughput by window of time, with nodes, runs in flight and pods."""

from dataclasses import dataclass

import numpy as np

from harness.analysis.timeline import Floats, Timeline, floats, mean_active, remembered
from harness.model.phases import POD_PHASES, RUNNING, SUCCEEDED, UNSCHEDULABLE

_WIDTHS_S = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)
_WINDOWS = 60


@dataclass(frozen=True, slots=True, eq=False)
class Throughput:
    """Windows between `edges_s` (length n + 1, seconds after t0); every other array has length n.

    Attributes:
        due: arrivals due in the window.
        succeeded: runs that succeeded in the window.
        failed: runs that ended otherwise.
        nodes: mean number of ready nodes that can run the runs' pods; NaN where no node was observed.
        in_flight: mean number of accepted, unfinished runs.
        running: mean number of running pods.
        pending: mean number of unschedulable pods.
        per_hour: runs that succeeded per hour, from the first due to the last end.
        over_per_hour: all runs that ended per hour.
        makespan_s: from the first due to the last end.
    """

    edges_s: Floats
    due: Floats
    succeeded: Floats
    failed: Floats
    nodes: Floats
    in_flight: Floats
    running: Floats
    pending: Floats
    per_hour: float
    over_per_hour: float
    makespan_s: float

    @property
    def width_s(self) -> float:
        """Seconds of each window."""
        return float(self.edges_s[1] - self.edges_s[0])

    @property
    def middles_s(self) -> Floats:
        """The middle of each window, seconds after t0."""
        return np.asarray((self.edges_s[1:] + self.edges_s[:-1]) / 2, dtype=np.float64)


@remembered
def throughput(timeline: Timeline) -> Throughput:
    """Count and average in about sixty windows of a round width over the whole test."""
    runs, nodes, pods = timeline.runs, timeline.run_nodes, timeline.pods
    over = timeline.is_over
    due, over_s = floats(runs, "due_s"), floats(runs, "over_s")
    good = over & (runs["state"] == SUCCEEDED).to_numpy(dtype=bool)
    last = float(np.nanmax(over_s[over])) if over.any() else timeline.end_s
    makespan = last - float(np.nanmin(due)) if np.isfinite(due).any() else 0.0
    end_s = max(last, timeline.end_s if timeline.is_open.any() else 0.0, float(np.nanmax(due, initial=0.0)))
    edges = windows(end_s, least_s=_grain_s(over_s[over]))
    answered = floats(runs, "answered_s")
    begun = np.where(over_s <= answered, floats(runs, "sent_s"), answered)  # the answer may be the result
    begun = np.where(over | timeline.is_open, begun, np.nan)
    ready, gone = floats(nodes, "ready_s"), floats(nodes, "gone_s")
    phase = pods["phase"].to_numpy()
    start, end = floats(pods, "start_s"), floats(pods, "end_s")

    def pods_in(name: str) -> Floats:
        mine = phase == POD_PHASES.index(name)
        return mean_active(start[mine], end[mine], edges)

    return Throughput(
        edges_s=edges,
        due=_count(due, edges),
        succeeded=_count(over_s[good], edges),
        failed=_count(over_s[over & ~good], edges),
        nodes=mean_active(ready, gone, edges) if len(nodes) else np.full(edges.size - 1, np.nan),
        in_flight=mean_active(begun, np.where(over, over_s, np.nan), edges),
        running=pods_in(RUNNING),
        pending=pods_in(UNSCHEDULABLE),
        per_hour=3600 * float(good.sum()) / makespan if makespan > 0 else 0.0,
        over_per_hour=3600 * float(over.sum()) / makespan if makespan > 0 else 0.0,
        makespan_s=makespan,
    )


def windows(end_s: float, count: int = _WINDOWS, least_s: float = 0.0) -> Floats:
    """Edges of about `count` windows of a round width, `least_s` or more, from 0 to at least `end_s`."""
    width = next((w for w in _WIDTHS_S if w * count >= end_s and w >= least_s), _WIDTHS_S[-1])
    # The last edge lies strictly after the end, so that a run that ends on an edge is counted.
    return np.arange(int(max(end_s, 0.0) / width) + 2, dtype=np.float64) * width


def _grain_s(at: Floats) -> float:
    """1 where instants are whole seconds, since shorter windows could stay empty; else 0."""
    since = np.round(at - at[:1], 6)
    return 1.0 if at.size > 1 and not np.any(since % 1.0) else 0.0


def _count(at: Floats, edges: Floats) -> Floats:
    """Counts by window; an instant before t0 (platforms round down to whole seconds) counts in the first one."""
    known = np.clip(at[np.isfinite(at)], edges[0], None)
    return np.histogram(known, bins=edges)[0].astype(np.float64)
