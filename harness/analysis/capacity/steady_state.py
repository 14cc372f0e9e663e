"""Throughput by number of nodes in the steady parts of a test: the data for capacity models."""

from dataclasses import dataclass

import numpy as np

from harness.analysis.timeline import Floats, Timeline, active, floats, integral, merged
from harness.analysis.waits.waits import waits
from harness.model.phases import PULLING, RUNNING, SCHEDULING, STARTING, STORING, SUCCEEDED

_LEAST_RUNS = 5


@dataclass(frozen=True, slots=True, eq=False)
class SteadyState:
    """One entry per stretch of time with a constant number of nodes that all had work.

    Attributes:
        nodes: number of ready nodes.
        per_hour: runs that ended per hour.
        start_s: start of the stretch, after its warm-up.
        end_s: end of the stretch.
        settle_s: the warm-up cut off each stretch: a typical run's time in pods, since runs that end earlier began on
            another number of nodes.
    """

    nodes: Floats
    per_hour: Floats
    start_s: Floats
    end_s: Floats
    settle_s: float


def steady_state(timeline: Timeline) -> SteadyState:
    """Cut the run where the number of ready nodes changes, drop warm-up and drain, and count the runs that end.

    A stretch counts when pods waited for a node during nearly all of it (so the nodes were the limit), it is longer
    than its warm-up, and at least five runs ended in it.
    """
    empty = np.zeros(0)
    split = waits(timeline)
    if not split.row.size or not len(timeline.run_nodes):
        return SteadyState(empty, empty, empty, empty, 0.0)
    worked = sum(split.of(name) for name in (SCHEDULING, PULLING, STARTING, RUNNING, STORING))
    settle = float(np.median(np.asarray(worked)))
    ready, gone = floats(timeline.run_nodes, "ready_s"), floats(timeline.run_nodes, "gone_s")
    changes = np.concatenate((ready, gone))
    changes = changes[np.isfinite(changes) & (changes > 0) & (changes < timeline.end_s)]
    cuts = np.unique(np.concatenate(([0.0], changes, [timeline.end_s])))
    nodes = active(ready, gone, cuts[:-1])
    start, end = cuts[:-1] + settle, cuts[1:]
    kept = (end - start > settle) & (nodes > 0)
    nodes, start, end = nodes[kept], start[kept], end[kept]
    busy = share_with_pending(timeline, start, end) > 0.9
    ended = np.sort(
        floats(timeline.runs, "over_s")[timeline.is_over & (timeline.runs["state"] == SUCCEEDED).to_numpy()]
    )
    count = np.searchsorted(ended, end) - np.searchsorted(ended, start)
    kept = busy & (count >= _LEAST_RUNS)
    per_hour = 3600 * count[kept] / (end[kept] - start[kept])
    return SteadyState(nodes[kept], per_hour.astype(np.float64), start[kept], end[kept], settle)


def share_with_pending(timeline: Timeline, start: Floats, end: Floats) -> Floats:
    """The share of each stretch in which at least one pod waited for a node of the steps' pools."""
    pods = timeline.waiting_for_run_nodes
    opened, closed = floats(pods, "start_s"), floats(pods, "end_s")
    closed = np.where(np.isfinite(closed), closed, timeline.end_s)
    low, high = merged(opened, np.maximum(opened, closed))
    order = np.argsort(start)
    covered = np.zeros(start.size)
    covered[order] = integral(low, high, end[order]) - integral(low, high, start[order])
    return covered / np.maximum(end - start, 1e-9)
