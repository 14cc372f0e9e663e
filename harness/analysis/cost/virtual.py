"""Pods of the runs on virtual nodes, such as those of AKS and Fargate: no machines, charged by pod."""

from dataclasses import dataclass

import numpy as np

from harness.analysis.cost.requested import by_request
from harness.analysis.timeline import Bools, Floats, Timeline, distinct, floats
from harness.model.phases import POD_PHASES, REQUESTED_CPU_CORES, REQUESTED_MEMORY_BYTES, SCHEDULING, UNSCHEDULABLE

_PLACED = tuple(phase for phase in POD_PHASES if phase not in {UNSCHEDULABLE, SCHEDULING})
_GIB = 2**30


@dataclass(frozen=True, slots=True)
class VirtualPods:
    """What ran on virtual nodes. Hours are those from a pod's scheduling to its end, which clouds charge.

    Attributes:
        nodes: virtual nodes that pods of runs were on.
        pods: these pods.
        share: their hours as a share of those of all pods of runs.
        pod_hours: hours of these pods.
        cpu_hours: hours times requested cores; none when a task's requests are unknown.
        memory_gib_hours: hours times requested memory in GiB; none likewise.
    """

    nodes: int
    pods: int
    share: float
    pod_hours: float
    cpu_hours: float | None
    memory_gib_hours: float | None


def virtual_pods(timeline: Timeline) -> VirtualPods | None:
    """None where no pod of a run was on a virtual node."""
    pods, placed = timeline.pods, timeline.of_runs(*_PLACED)
    there = placed & timeline.on_virtual
    if not there.any():
        return None
    seconds = np.nan_to_num(floats(pods, "end_s"), nan=timeline.end_s) - floats(pods, "start_s")
    seconds = np.maximum(seconds, 0.0)
    memory = _requested(timeline, REQUESTED_MEMORY_BYTES, there, seconds)
    return VirtualPods(
        nodes=int(pods["node"][there].nunique()),
        pods=distinct(pods["pod"].to_numpy()[there]),
        share=float(seconds[there].sum() / max(seconds[placed].sum(), 1e-9)),
        pod_hours=float(seconds[there].sum()) / 3600,
        cpu_hours=_requested(timeline, REQUESTED_CPU_CORES, there, seconds),
        memory_gib_hours=None if memory is None else memory / _GIB,
    )


def _requested(timeline: Timeline, metric: str, there: Bools, seconds: Floats) -> float | None:
    """Hours times requests; none when those of a task are unknown."""
    groups = by_request(timeline, metric, there)
    if groups is None:
        return None
    return sum(amount * float(seconds[chosen].sum()) for amount, chosen in groups) / 3600
