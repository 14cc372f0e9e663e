"""Throughput against nodes within one test, while there was work for every node.

Runs end long after nodes were added, and all at once where a platform runs the first step of every run before any
second. So progress is measured by pods: each pod is a fraction of its run, in proportion to its task's share of a node
by requests (dominant share: Ghodsi et al., Dominant Resource Fairness, 2011) times the typical duration of such pods. A
pod delivers its fraction evenly while it holds its node.
"""

from dataclasses import dataclass

import numpy as np

from harness.analysis.capacity.scaling import Scaling, fit
from harness.analysis.cost.requested import dominant_shares
from harness.analysis.throughput import throughput
from harness.analysis.timeline import (
    Floats,
    Timeline,
    active,
    beginnings,
    floats,
    integral,
    mean_active,
    merged,
    remembered,
)
from harness.analysis.waits.waits import waits
from harness.model.phases import PULLING, RUNNING, SCHEDULING, SERVING, STARTING, STORING, SUCCEEDED

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


_PLACED = (PULLING, STARTING, RUNNING, STORING, SERVING)
_PENDING = 0.9  # of a window
_LEVELS, _SPREAD = 3, 1.5  # at least 3 different numbers of nodes, the largest at least 1.5 times the smallest
_OF_A_POD, _OF_A_WINDOW = 0.5, 0.1  # a pod shows only its mean speed, so windows are not much shorter than pods
_SEED = 7


@dataclass(frozen=True, slots=True, eq=False)
class Progress:
    """One entry per window in which pods waited for a node, so that the nodes were the limit.

    Attributes:
        nodes: mean number of ready nodes.
        per_hour: completed work per hour, in runs.
    """

    nodes: Floats
    per_hour: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """The progress that pods made; one entry per pod, for the time it holds its node.

    Attributes:
        start: seconds after t0.
        end: seconds after t0; NaN while it still runs.
        rate: work per second, in runs.
        usual_s: how long a pod of a successful run typically holds its node.
        of_machines: the share of all work that this is: pods on virtual nodes did the rest.
    """

    start: Floats
    end: Floats
    rate: Floats
    usual_s: float
    of_machines: float

    def done(self, edges: Floats) -> Floats:
        """The work done in each window between `edges`, in runs; shape (len(edges) - 1,)."""
        return np.diff(integral(self.start, self.end, edges, self.rate))


@remembered
def progress(timeline: Timeline) -> Progress | None:
    """Windows from the first pod on; none with too few different numbers of nodes, or no work."""
    ready, gone = floats(timeline.run_nodes, "ready_s"), floats(timeline.run_nodes, "gone_s")
    regular = throughput(timeline).edges_s
    changes = np.concatenate((ready, gone))
    changes = changes[(changes > regular[0]) & (changes < regular[-1])]
    found = work(timeline) if _differ(active(ready, gone, np.append(changes, regular[0]))) else None
    if found is None:
        return None
    least_s = max(_OF_A_POD * found.usual_s, _OF_A_WINDOW * float(regular[1] - regular[0]))
    edges = _thinned(np.unique(np.concatenate((regular, changes))), least_s)
    nodes, done = mean_active(ready, gone, edges), found.done(edges)
    kept = (share_with_pending(timeline, edges[:-1], edges[1:]) > _PENDING) & (edges[1:] > found.start.min())
    kept &= nodes > 0
    return Progress(nodes[kept], 3600 * (done / np.diff(edges))[kept]) if _differ(nodes[kept]) else None


def scaling(timeline: Timeline) -> Scaling | None:
    """The scaling law fitted to `progress`; none when there is none."""
    found = progress(timeline)
    return None if found is None else fit(found.nodes, found.per_hour, np.random.default_rng(_SEED))


def work(timeline: Timeline) -> Work | None:
    """Divide runs into their pods' fractions; none when no successful run has observed pods.

    The fractions of pods on virtual nodes are left out: machines did not do that work. Drivers on other pools than the
    steps' have no fraction.
    """
    pods, placed = timeline.pods, timeline.of_runs(*_PLACED) & ~timeline.drives_elsewhere
    first = beginnings(pods["pod"].to_numpy()[placed])
    if not first.size:
        return None
    # The rows of a pod are adjacent.
    start = np.minimum.reduceat(floats(pods, "start_s")[placed], first)
    end = np.maximum.reduceat(floats(pods, "end_s")[placed], first)
    task, row = (column.to_numpy()[placed][first] for column in (pods["task"].cat.codes, pods["row"]))
    good = (timeline.runs["state"] == SUCCEEDED).to_numpy(dtype=bool)[row] & (end > start)
    if not good.any():
        return None
    shares = dominant_shares(timeline)
    count = np.bincount(task[good], minlength=shares.size)
    if not shares[count > 0].all():
        shares = np.ones(shares.size)
    usual = np.bincount(task[good], (end - start)[good], shares.size) / np.maximum(count, 1)
    part = usual * shares
    part *= np.count_nonzero(np.bincount(row[good])) / float((part * count).sum())  # together they make up all runs
    # A failed pod may end at once without having worked faster.
    rate = end - start
    np.copyto(rate, np.maximum(usual, 1e-9)[task], where=~good)
    np.divide(part[task], rate, out=rate)
    here = ~timeline.on_virtual[placed][first]
    del task, row, good, first  # of a large test each is large
    if not here.any():
        return None
    done = np.nan_to_num(end - start, copy=False)
    done *= rate
    of_machines = float(done[here].sum() / max(done.sum(), 1e-12))
    del done
    if here.all():
        return Work(start, end, rate, float(np.average(usual, weights=part * count)), of_machines)
    return Work(start[here], end[here], rate[here], float(np.average(usual, weights=part * count)), of_machines)


def _differ(nodes: Floats) -> bool:
    """Whether these numbers of nodes differ enough to extrapolate from."""
    nodes = nodes[nodes > 0]
    return np.unique(np.round(nodes)).size >= _LEVELS and bool(nodes.max() >= _SPREAD * nodes.min())


def _thinned(edges: Floats, least_s: float) -> Floats:
    """The ascending edges that are at least `least_s` apart."""
    kept = [float(edges[0])]
    for edge in edges[1:].tolist():
        if edge - kept[-1] >= least_s:
            kept.append(edge)
    return np.array(kept)
