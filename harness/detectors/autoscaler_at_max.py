"""The autoscaler has reached its maximum, and pods still wait for nodes."""

from harness.analysis.capacity.autoscaling import scale_ups
from harness.analysis.timeline import Timeline
from harness.analysis.waits.scheduling_wait import scheduling_wait
from harness.detectors.capability import Capability
from harness.detectors.detector import slowed
from harness.detectors.node_waits import SHARE, certainty, waiting_evidence
from harness.model.findings import Finding

NAME = "autoscaler-at-max"
NEEDS = (Capability.RUNS, Capability.PODS, Capability.NODES, Capability.POD_EVENTS)
FAULTS = ("autoscaler-at-max",)


def detect(timeline: Timeline) -> list[Finding]:
    """It reported its maximum, or its last decision went there, and pods went on waiting."""
    wait = scheduling_wait(timeline)
    if wait.share < SHARE or not (wait.at_max and wait.grew) or wait.provisioning > wait.unschedulable:
        return []
    decisions = scale_ups(timeline)
    group, limit = decisions[-1].group, decisions[-1].limit
    return [
        Finding(
            NAME,
            f"The autoscaler is at its maximum of {limit} nodes: runs spent {wait.share:.0%} of their time "
            "waiting for a node",
            certainty(0.9, wait),
            waiting_evidence(timeline, wait),
            f"Raise the maximum of {group} (az aks nodepool update --update-cluster-autoscaler --min-count "
            "--max-count, gcloud container clusters update --enable-autoscaling --node-pool --max-nodes, eksctl scale "
            "nodegroup --nodes-max), or lower the steps' requests.",
            ("kubectl -n kube-system get configmap cluster-autoscaler-status -o yaml",),
            slowed(wait.share * wait.working),
        )
    ]
