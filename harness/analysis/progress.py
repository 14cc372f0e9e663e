"""Throughput against nodes within one run: how fast the runs got on while there was work for every node.

Runs end long after nodes came, and all at once where a platform takes the first step of every run before any second.
So it is their pods that are counted: each is a part of its run, as large as what its task holds of a node by its
requests (its dominant share: Ghodsi et al., Dominant Resource Fairness, 2011) for as long as such pods typically do.
A pod delivers its part evenly while it holds its node, the sooner the faster it works.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from harness.analysis.curves import integral
from harness.analysis.levels import share_with_pending
from harness.analysis.requested import dominant_shares
from harness.analysis.scaling import Scaling, fit
from harness.analysis.throughput import throughput
from harness.analysis.timeline import Floats, Timeline, beginnings, floats
from harness.model.phases import PULLING, RUNNING, STARTING, STORING, SUCCEEDED

_PLACED = (PULLING, STARTING, RUNNING, STORING)
_PENDING = 0.9  # of a window
_LEVELS, _SPREAD = 3, 1.5  # so many numbers of nodes, of which the most is so many times the least
_SEED = 7


@dataclass(frozen=True, slots=True, eq=False)
class Progress:
    """One entry a window of `throughput` in which pods waited for room, so that the nodes were the limit.

    Attributes:
        nodes: the mean number that were ready.
        per_hour: the runs' worth of work that was done, per hour.
        width_s: of a window.
    """

    nodes: Floats
    per_hour: Floats
    width_s: float


@lru_cache(maxsize=1)  # the fit and its figure ask; a timeline never changes
def progress(timeline: Timeline) -> Progress | None:
    """Windows from the first pod at work on; none when they show too few different numbers of nodes, or no work."""
    seen = throughput(timeline)
    edges, nodes = seen.edges_s, seen.nodes
    waited = share_with_pending(timeline, edges[:-1], edges[1:]) > _PENDING
    kept = waited & (np.cumsum(seen.running) > 0) & (nodes > 0)
    nodes = nodes[kept]
    if np.unique(np.round(nodes)).size < _LEVELS or nodes.max() < _SPREAD * nodes.min():
        return None
    per_hour = 3600 * work_done(timeline, edges)[kept] / seen.width_s
    return Progress(nodes, per_hour, seen.width_s) if per_hour.any() else None


def scaling(timeline: Timeline) -> Scaling | None:
    """The law behind it."""
    found = progress(timeline)
    return None if found is None else fit(found.nodes, found.per_hour, np.random.default_rng(_SEED))


def work_done(timeline: Timeline, edges: Floats) -> Floats:
    """The runs' worth of work in each window between `edges`; shape (len(edges) - 1,). None of it without a success."""
    pods, placed = timeline.pods, timeline.of_runs(*_PLACED)
    first = beginnings(pods["pod"].to_numpy()[placed])
    if not first.size:
        return np.zeros(edges.size - 1)
    # The stretches of a pod stand together.
    start = np.minimum.reduceat(floats(pods, "start_s")[placed], first)
    end = np.maximum.reduceat(floats(pods, "end_s")[placed], first)
    task, row = (column.to_numpy()[placed][first] for column in (pods["task"].cat.codes, pods["row"]))
    good = (timeline.runs["state"] == SUCCEEDED).to_numpy(dtype=bool)[row] & (end > start)
    if not good.any():
        return np.zeros(edges.size - 1)
    shares = dominant_shares(timeline)
    count = np.bincount(task[good], minlength=shares.size)
    if not shares[count > 0].all():
        shares = np.ones(shares.size)
    typical = np.bincount(task[good], (end - start)[good], shares.size) / np.maximum(count, 1)
    part = typical * shares
    part *= np.count_nonzero(np.bincount(row[good])) / float((part * count).sum())  # together they are all the runs
    # What fails may do so at once: it has not worked any faster.
    length = np.where(good, end - start, np.maximum(typical, 1e-9)[task])
    return np.diff(integral(start, end, edges, part[task] / length))
