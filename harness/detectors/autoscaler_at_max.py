"""The autoscaler has brought every node it may, and pods still wait."""

from harness.analysis.capacity.autoscaling import scale_ups
from harness.analysis.timeline import Timeline
from harness.analysis.waits.scheduling_wait import scheduling_wait
from harness.detectors.detector import NODES, POD_EVENTS, PODS, RUNS, slowed
from harness.detectors.nodes_exhausted import SHARE, sure, waiting_evidence
from harness.model.findings import Finding

NAME = "autoscaler-at-max"
NEEDS = (RUNS, PODS, NODES, POD_EVENTS)


def detect(timeline: Timeline) -> list[Finding]:
    """It said that it is at its maximum, or its last decision went there, and the wait for room went on."""
    found = scheduling_wait(timeline)
    if found.share < SHARE or not (found.at_max and found.grew) or found.provisioning > found.unschedulable:
        return []
    decisions = scale_ups(timeline)
    group, limit = decisions[-1].group, decisions[-1].limit
    return [
        Finding(
            NAME,
            f"The autoscaler is at its maximum of {limit} nodes: runs spent {found.share:.0%} of their time "
            "waiting for room",
            sure(0.9, found),
            waiting_evidence(timeline, found),
            f"Raise the maximum of {group} (az aks nodepool update --update-cluster-autoscaler --min-count "
            "--max-count, gcloud container clusters update --enable-autoscaling --node-pool --max-nodes, eksctl scale "
            "nodegroup --nodes-max), or let the steps request less.",
            ("kubectl -n kube-system get configmap cluster-autoscaler-status -o yaml",),
            slowed(found.share * found.working),
        )
    ]
