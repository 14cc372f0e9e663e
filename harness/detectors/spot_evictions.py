"""Nodes disappear under running pods: spot machines are reclaimed, pods evicted."""

import numpy as np

from harness.analysis.capacity.autoscaling import TAKEN_BACK
from harness.analysis.timeline import Timeline, floats
from harness.analysis.waits.failures import failures
from harness.analysis.waits.wasted_work import lost_with_node
from harness.detectors.capability import Capability
from harness.detectors.detector import broke, slowed
from harness.detectors.error_texts import EVICTED
from harness.model.findings import Evidence, Finding
from harness.model.units import format_duration

NAME = "spot-evictions"
NEEDS = (Capability.RUNS, Capability.PODS, Capability.NODES)
USES = {Capability.POD_EVENTS: "why runs failed, and machines that the cloud took back"}
FAULTS = ("spot-evictions",)

_LEAST = 0.01  # of the pods' time


def detect(timeline: Timeline) -> list[Finding]:
    """Nodes that disappeared while pods of runs worked on them."""
    lost = lost_with_node(timeline)
    if not lost.size:
        return []
    names = timeline.pods["node"].take(lost).to_numpy(dtype=object)
    spot = _of_spot(timeline, names)
    worked = float(np.nansum(floats(timeline.pods, "end_s") - floats(timeline.pods, "start_s")))
    wasted = float(np.nansum(floats(timeline.pods, "end_s")[lost] - floats(timeline.pods, "start_s")[lost]))
    failed = [f for f in failures(timeline) if f.says(EVICTED)]
    share = len(failed) / max(len(timeline.runs), 1)
    if not failed and wasted < _LEAST * worked:
        return []
    gone = len(set(names))
    cause = "spot machines were reclaimed" if spot > 0.5 else "nodes disappeared"
    return [
        Finding(
            NAME,
            f"{gone:,} {cause} under {lost.size:,} running steps"
            + (f": {share:.0%} of the runs failed" if failed else ""),
            0.85 if spot > 0.5 else 0.6,
            (
                Evidence(
                    f"{lost.size:,} pods ended with their node, on {gone:,} nodes",
                    float(lost.size), "pods", "spans",
                ),
                Evidence(f"{format_duration(wasted)} of work was lost and had to be repeated", wasted, "s", "spans"),
                Evidence(
                    f"{spot:.0%} of these pods ran on spot machines or on machines that the cloud reclaimed",
                    spot, "share", "nodes", "spot = true",
                ),
            ),
            "Add retries (set_retry) and checkpoints to the steps, run long steps on on-demand machines, and spread "
            "the pool over several machine types and zones.",
            ("kubectl get nodes -L kubernetes.azure.com/scalesetpriority -L cloud.google.com/gke-spot",),
            broke(share) if failed else slowed(min(1.0, 2 * lost.size / max(len(timeline.runs), 1))),
        )
    ]  # fmt: skip


def _of_spot(timeline: Timeline, names: "np.ndarray[tuple[int], np.dtype[np.object_]]") -> float:
    """The share of these nodes that are spot machines or that the cloud reclaimed."""
    taken_back = set(timeline.events["object"][timeline.events["reason"].isin(TAKEN_BACK)])
    of_spot = timeline.nodes.set_index("name")["spot"].reindex(names).fillna(value=False).to_numpy(dtype=bool)
    return float((of_spot | np.isin(names, list(taken_back))).mean())
