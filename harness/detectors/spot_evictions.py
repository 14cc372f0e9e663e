"""Nodes are taken away under running pods: spot machines reclaimed, pods evicted."""

import re

import numpy as np

from harness.analysis.capacity.autoscaling import TAKEN_BACK
from harness.analysis.timeline import Timeline, floats
from harness.analysis.waits.failures import failures
from harness.analysis.waits.wasted_work import lost_with_node
from harness.detectors.detector import NODES, PODS, RUNS, broke, slowed
from harness.model.findings import Evidence, Finding
from harness.model.units import format_duration

NAME = "spot-evictions"
NEEDS = (RUNS, PODS, NODES)

_LEAST = 0.01  # of the pods' time

EVICTED = re.compile(
    r"\bevict|preempt|node (?:is )?shut(?:ting)? ?down|NodeShutdown|pod deleted|node .{0,60}(?:not "
    "found|lost)|imminent node",
    re.IGNORECASE,
)


def detect(timeline: Timeline) -> list[Finding]:
    """Nodes that went while pods of runs worked on them."""
    lost = lost_with_node(timeline)
    if not lost.size:
        return []
    names = timeline.pods["node"].take(lost).to_numpy(dtype=object)
    spot = _of_spot(timeline, names)
    worked = float(np.nansum(floats(timeline.pods, "end_s") - floats(timeline.pods, "start_s")))
    wasted = float(np.nansum(floats(timeline.pods, "end_s")[lost] - floats(timeline.pods, "start_s")[lost]))
    said = [f for f in failures(timeline) if f.says(EVICTED)]
    share = len(said) / max(len(timeline.runs), 1)
    if not said and wasted < _LEAST * worked:
        return []
    gone = len(set(names))
    cause = "spot machines were taken away" if spot > 0.5 else "nodes went away"
    return [
        Finding(
            NAME,
            f"{gone:,} {cause} under {lost.size:,} running steps"
            + (f": {share:.0%} of the runs failed" if said else ""),
            0.95 if spot > 0.5 else 0.6,
            (
                Evidence(
                    f"{lost.size:,} pods ended with their node, {gone:,} nodes in all",
                    float(lost.size), "pods", "spans",
                ),
                Evidence(f"{format_duration(wasted)} of work was lost and had to be done again", wasted, "s", "spans"),
                Evidence(
                    f"{spot:.0%} of these pods ran on machines that the cloud took back or may take back",
                    spot, "share", "nodes", "spot = true",
                ),
            ),
            "Give steps a retry policy (set_retry) and checkpoints, keep long steps on machines on demand, and spread "
            "the pool over several machine types and zones.",
            ("kubectl get nodes -L kubernetes.azure.com/scalesetpriority -L cloud.google.com/gke-spot",),
            broke(share) if said else slowed(min(1.0, 2 * lost.size / max(len(timeline.runs), 1))),
        )
    ]  # fmt: skip


def _of_spot(timeline: Timeline, names: "np.ndarray[tuple[int], np.dtype[np.object_]]") -> float:
    """The share of these nodes that the cloud took back, or may take back."""
    taken_back = set(timeline.events["object"][timeline.events["reason"].isin(TAKEN_BACK)])
    of_spot = timeline.nodes.set_index("name")["spot"].reindex(names).fillna(value=False).to_numpy(dtype=bool)
    return float((of_spot | np.isin(names, list(taken_back))).mean())
