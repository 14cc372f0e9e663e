"""Throughput against nodes within one run: how fast the runs got on while there was work for every node.

Runs end long after nodes came, and all at once where a platform takes the first step of every run before any second.
So it is their pods that are counted: each is a part of its run, as large as what its task holds of a node by its
requests (its dominant share: Ghodsi et al., Dominant Resource Fairness, 2011) for as long as such pods typically do.
A pod delivers its part evenly while it holds its node, the sooner the faster it works.
"""

from dataclasses import dataclass

import numpy as np

from harness.analysis.capacity.scaling import Scaling, fit
from harness.analysis.capacity.steady_state import share_with_pending
from harness.analysis.cost.requested import dominant_shares
from harness.analysis.throughput import throughput
from harness.analysis.timeline import Floats, Timeline, beginnings, floats
from harness.analysis.timeline.curves import active, integral, mean_active
from harness.analysis.timeline.memory import remembered
from harness.model.phases import PULLING, RUNNING, STARTING, STORING, SUCCEEDED

_PLACED = (PULLING, STARTING, RUNNING, STORING)
_PENDING = 0.9  # of a window
_LEVELS, _SPREAD = 3, 1.5  # so many numbers of nodes, of which the most is so many times the least
_OF_A_POD, _OF_A_WINDOW = 0.5, 0.1  # a pod tells its mean speed alone: windows are not much shorter than pods
_SEED = 7


@dataclass(frozen=True, slots=True, eq=False)
class Progress:
    """One entry a window in which pods waited for room, so that the nodes were the limit.

    Attributes:
        nodes: the mean number that were ready.
        per_hour: the runs' worth of work that was done, per hour.
    """

    nodes: Floats
    per_hour: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """What pods did of their runs; one entry a pod, from when it got its node until it left it.

    Attributes:
        start: seconds after t0.
        end: NaN while it is there.
        rate: runs' worth per second.
        usual_s: how long a pod of a run that succeeded typically holds its node.
    """

    start: Floats
    end: Floats
    rate: Floats
    usual_s: float

    def done(self, edges: Floats) -> Floats:
        """The runs' worth of work in each window between `edges`; shape (len(edges) - 1,)."""
        return np.diff(integral(self.start, self.end, edges, self.rate))


@remembered
def progress(timeline: Timeline) -> Progress | None:
    """Windows from the first pod on; none when they show too few different numbers of nodes, or no work."""
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
    """The law behind it."""
    found = progress(timeline)
    return None if found is None else fit(found.nodes, found.per_hour, np.random.default_rng(_SEED))


def work(timeline: Timeline) -> Work | None:
    """Take runs apart into what their pods are of them; none when no run succeeded whose pods were seen."""
    pods, placed = timeline.pods, timeline.of_runs(*_PLACED)
    first = beginnings(pods["pod"].to_numpy()[placed])
    if not first.size:
        return None
    # The stretches of a pod stand together.
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
    held = (end - start)[good]
    usual = np.bincount(task[good], held, shares.size) / np.maximum(count, 1)
    part = usual * shares
    part *= np.count_nonzero(np.bincount(row[good])) / float((part * count).sum())  # together they are all the runs
    # What fails may do so at once: it has not worked any faster.
    length = np.where(good, end - start, np.maximum(usual, 1e-9)[task])
    return Work(start, end, part[task] / length, float(np.average(usual, weights=part * count)))


def _differ(nodes: Floats) -> bool:
    """Whether these numbers of nodes are enough to say something about others."""
    nodes = nodes[nodes > 0]
    return np.unique(np.round(nodes)).size >= _LEVELS and bool(nodes.max() >= _SPREAD * nodes.min())


def _thinned(edges: Floats, least_s: float) -> Floats:
    """Those of the ascending edges that leave at least so much between them."""
    kept = [float(edges[0])]
    for edge in edges[1:].tolist():
        if edge - kept[-1] >= least_s:
            kept.append(edge)
    return np.array(kept)
