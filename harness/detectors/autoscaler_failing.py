"""The autoscaler asks for machines and does not get them."""

from harness.analysis.timeline import Timeline
from harness.analysis.waits.scheduling_wait import scheduling_wait
from harness.detectors.detector import NODES, POD_EVENTS, PODS, RUNS, slowed
from harness.detectors.nodes_exhausted import SHARE, waiting_evidence
from harness.model.findings import Evidence, Finding

NAME = "autoscaler-failing"
NEEDS = (RUNS, PODS, NODES, POD_EVENTS)


def detect(timeline: Timeline) -> list[Finding]:
    """It said that a scale-up failed, and pods wait for room."""
    found = scheduling_wait(timeline)
    if found.share < SHARE or not found.refused:
        return []
    return [
        Finding(
            NAME,
            f"The autoscaler can't get machines: runs spent {found.share:.0%} of their time waiting for room",
            0.9,
            (Evidence(f"it said: “{found.refused}”", None, "", "events"), *waiting_evidence(timeline, found)),
            "The cloud refuses: raise its quota, choose a machine type or zone with capacity, or let the autoscaler "
            "fall back to another pool.",
            ("kubectl -n kube-system get configmap cluster-autoscaler-status -o yaml",),
            slowed(found.share),
        )
    ]
