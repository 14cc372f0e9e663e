"""How well the autoscaler worked, and how to configure the pool for a load like this."""

import math
from dataclasses import dataclass

import numpy as np

from harness.analysis.capacity.autoscaling import TAKEN_BACK, provisioning_times
from harness.analysis.cost.requested import requested_cpu
from harness.analysis.throughput import throughput
from harness.analysis.timeline import Timeline, floats
from harness.analysis.waits.waits import waits
from harness.model.phases import PULLING, RUNNING, SCHEDULING, STARTING, STORING

# The cluster autoscaler's own scale-down delay; a node that is needed again sooner was removed too early.
SOON_S = 600.0
_LONGEST_KEEP_S = 3600.0
_ALWAYS = 0.05  # of the windows may need fewer nodes than the minimum


@dataclass(frozen=True, slots=True)
class ScaleAdvice:
    """For the pools that the runs' pods ran on.

    Attributes:
        coming_s: median seconds from the autoscaler's decision to a ready node; none when no node was added.
        early: nodes that were removed too early: their pool added another one within ten minutes.
        keep_s: how long to keep unneeded nodes to avoid that; none when it did not happen.
        minimum: nodes that are needed nearly all the time.
        maximum: nodes beyond which one more would work for less time than its provisioning or a single run takes.
    """

    coming_s: float | None
    early: int
    keep_s: float | None
    minimum: int
    maximum: int


def scale_advice(timeline: Timeline) -> ScaleAdvice | None:
    """Advice from requests, waits and nodes; none when nodes or requests were not observed, or no run ended."""
    cpu = requested_cpu(timeline)
    sizes = floats(timeline.run_nodes, "cpu")
    split = waits(timeline)
    if cpu is None or not sizes.size or not split.row.size or cpu.held_hours <= 0:
        return None
    size = float(np.median(sizes))
    coming = provisioning_times(timeline)
    coming_s = float(np.median(coming)) if coming.size else None
    worked = sum(split.of(name) for name in (SCHEDULING, PULLING, STARTING, RUNNING, STORING))
    alone_s = max(float(np.median(np.asarray(worked))), coming_s or 0.0, 1e-9)
    over = np.searchsorted(throughput(timeline).edges_s, throughput(timeline).makespan_s)
    wanted = cpu.wanted[: max(int(over), 1)]
    useful = math.ceil(3600 * cpu.held_hours / (size * alone_s))
    gaps = _gaps(timeline)
    return ScaleAdvice(
        coming_s=coming_s,
        early=int(gaps.size),
        keep_s=min(float(gaps.max()) + SOON_S, _LONGEST_KEEP_S) if gaps.size else None,
        minimum=max(0, math.floor(float(np.quantile(wanted, _ALWAYS)) / size)),
        maximum=max(1, min(useful, math.ceil(float(wanted.max()) / size))),
    )


def _gaps(timeline: Timeline) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    """Seconds from the removal of a node to the creation of the next one of its pool, up to `SOON_S`.

    Reclaimed machines are left out: the autoscaler did not remove those.
    """
    taken = set(timeline.events_of("Node", *TAKEN_BACK)["object"])
    found: list[float] = []
    for _, nodes in timeline.run_nodes.groupby("pool"):
        kept = ~nodes["name"].isin(taken).to_numpy(dtype=bool)
        gone, came = floats(nodes, "gone_s")[kept], np.sort(floats(nodes, "created_s"))
        gone = np.sort(gone[np.isfinite(gone) & (gone > 0) & (gone < timeline.end_s)])
        after = np.searchsorted(came, gone, side="right")
        gaps = came[after[after < came.size]] - gone[after < came.size]
        found += gaps[gaps <= SOON_S].tolist()
    return np.array(found, dtype=np.float64)
