"""What others took from the cluster and the workflow controller while the test ran."""

from dataclasses import dataclass

import numpy as np

from harness.analysis.cost.requested import requests_by
from harness.analysis.timeline import Floats, Timeline, beginnings, distinct, floats, merged
from harness.model.phases import (
    POD_PHASES,
    REQUESTED_CPU_CORES,
    REQUESTED_MEMORY_BYTES,
    SCHEDULING,
    UNSCHEDULABLE,
    is_workload,
)

_RESOURCES = ((REQUESTED_CPU_CORES, "cpu"), (REQUESTED_MEMORY_BYTES, "memory"))
_PLACED = ~np.isin(POD_PHASES, (UNSCHEDULABLE, SCHEDULING))


@dataclass(frozen=True, slots=True)
class OthersLoad:
    """What others had in the cluster during the test: runs, and other workloads on the nodes that the test used.

    Attributes:
        runs: runs of others that had pods.
        workloads: other workloads, such as notebooks and services, with pods on these nodes.
        pods: how many pods of runs were created during the test.
        created: these as a share of all pods that the controller created for runs meanwhile.
        held: share of the CPU or the memory, whichever is larger, of the nodes that this test's pods could use, which
            the others' pods requested while this test's pods waited for a node; 0 where none waited.
    """

    runs: int
    workloads: int
    pods: int
    created: float
    held: float


def others_load(timeline: Timeline) -> OthersLoad | None:
    """Sum up the others' pods between the first arrival and the end; none without any."""
    pods = timeline.others_pods
    start, end = floats(pods, "start_s"), np.nan_to_num(floats(pods, "end_s"), nan=timeline.end_s)
    pods = pods[(end > 0.0) & (start < timeline.end_s)]
    if not len(pods):
        return None
    names = sorted(set(pods["run"]))
    of_runs = pods[~pods["run"].isin([name for name in names if is_workload(name)])]
    first = beginnings(of_runs["pod"].to_numpy())
    new = int(np.count_nonzero(floats(of_runs, "start_s")[first] >= 0.0))
    own = distinct(timeline.pods["pod"].to_numpy())
    held = max(_held(timeline, metric, column) for metric, column in _RESOURCES)
    workloads = sum(map(is_workload, names))
    return OthersLoad(len(names) - workloads, workloads, new, new / max(new + own, 1), held)


def _held(timeline: Timeline, metric: str, column: str) -> float:
    """The share of the nodes' resource that others' pods requested while this test's pods waited."""
    waiting = timeline.waiting_for_run_nodes
    begun = floats(waiting, "start_s")
    low, high = merged(begun, np.maximum(begun, np.nan_to_num(floats(waiting, "end_s"), nan=timeline.end_s)))
    nodes, pods = timeline.run_nodes, timeline.others_pods
    there = _PLACED[pods["phase"].to_numpy()] & pods["node"].isin(set(nodes["name"])).to_numpy(dtype=bool)
    pods = pods[there]
    if not low.size or not len(pods):
        return 0.0
    by_task, by_pod = dict(requests_by(timeline, metric, "task")), dict(requests_by(timeline, metric, "pod"))
    names = timeline.names.take(pods["pod"].to_numpy())
    amounts = np.array(
        [by_pod.get(pod, by_task.get(task, 0.0)) for pod, task in zip(names, pods["task"].astype(str), strict=True)]
    )
    ready = np.nan_to_num(floats(nodes, "ready_s"), nan=np.inf)
    gone, end = (np.nan_to_num(each, nan=timeline.end_s) for each in (floats(nodes, "gone_s"), floats(pods, "end_s")))
    room = float(floats(nodes, column) @ _within(low, high, ready, gone))
    held = float(amounts @ _within(low, high, floats(pods, "start_s"), end))
    return min(held / room, 1.0) if room > 0 else 0.0


def _within(low: Floats, high: Floats, start: Floats, end: Floats) -> Floats:
    """Seconds of each [start, end] that the disjoint, ascending intervals [low, high] cover."""
    at = np.ravel(np.column_stack((low, high)))
    covered = np.concatenate(([0.0], np.cumsum(np.diff(at) * (np.arange(at.size - 1) % 2 == 0))))
    return np.asarray(np.interp(np.maximum(start, end), at, covered) - np.interp(start, at, covered), dtype=np.float64)
