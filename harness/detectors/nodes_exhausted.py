"""Pods wait for nodes and none are added: the cluster's nodes are the limit."""

from harness.analysis.timeline import Timeline
from harness.analysis.waits.lacking import lacking
from harness.analysis.waits.scheduling_wait import scheduling_wait
from harness.analysis.waits.store_cost import crowding
from harness.detectors.capability import Capability
from harness.detectors.detector import slowed
from harness.detectors.node_waits import GAIN, LEAST_GAIN, SHARE, certainty, waiting_evidence
from harness.model.findings import Finding

NAME = "nodes-exhausted"
NEEDS = (Capability.RUNS, Capability.PODS, Capability.NODES)
USES = {Capability.POD_EVENTS: "what the nodes ran out of, and whether the autoscaler could add one"}
EXPLAINED_BY = {"autoscaler-at-max": 0.0, "autoscaler-failing": 0.0}
OVERSTATED_EARLY = True
FAULTS = ("nodes-exhausted",)


def detect(timeline: Timeline) -> list[Finding]:
    """Most of the wait for a node passes with none being provisioned."""
    wait = scheduling_wait(timeline)
    if wait.share < SHARE or wait.provisioning > wait.unschedulable:
        return []
    gain = GAIN * wait.share * (1 - wait.pulls)
    if gain < LEAST_GAIN:
        return []  # pods on new nodes would pull for as long as they wait now
    found = lacking(timeline)
    if found is not None and found.too_large and not wait.grew:
        return []  # the pods that wait fit on no node
    return [
        Finding(
            NAME,
            f"The nodes are full: runs spent {wait.share:.0%} of their time waiting for a node",
            certainty(0.87 if Capability.POD_EVENTS.observed(timeline) else 0.6, wait),
            waiting_evidence(timeline, wait),
            "Add nodes to the steps' pool, let the autoscaler add them, or lower the steps' requests (the report's raw "
            "tables show their actual usage).",
            ("kubectl get nodes -o wide", "kubectl describe nodes | grep -A 8 'Allocated resources'"),
            slowed(gain * (1 - crowding(timeline))),
        )
    ]
