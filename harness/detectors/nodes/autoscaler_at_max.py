"""The autoscaler has reached its maximum, and pods still wait for nodes."""

from harness.analysis.capacity.autoscaling import scale_ups
from harness.analysis.waits.scheduling_wait import scheduling_wait
from harness.detectors.detector import Capability, Finding, Timeline, slowed
from harness.detectors.nodes import node_waits
from harness.detectors.nodes.node_waits import SHARE, waiting_evidence

NAME = "autoscaler-at-max"
NEEDS = (Capability.RUNS, Capability.PODS, Capability.NODES, Capability.POD_EVENTS)
OVERSTATED_EARLY = True


def detect(timeline: Timeline) -> list[Finding]:
    """It reported its maximum, or its last decision went there, and pods went on waiting."""
    wait = scheduling_wait(timeline)
    if wait.share < SHARE or not (wait.at_max and wait.grew) or wait.provisioning > wait.unschedulable:
        return []
    decisions = scale_ups(timeline)
    return [
        Finding(
            NAME,
            f"The autoscaler is at its maximum{f' of {decisions[-1].limit} nodes' if decisions else ''}: runs spent "
            f"{wait.share:.0%} of their time waiting for a node",
            0.9,
            waiting_evidence(timeline, wait),
            _fix(decisions[-1].group) if decisions else _KARPENTER,
            node_waits.status_commands(timeline),
            slowed(wait.unschedulable),
        )
    ]


_KARPENTER = "Raise the NodePool's spec.limits (kubectl edit nodepool), or lower the steps' requests."


def _fix(group: str) -> str:
    return (
        f"Raise the maximum of {group} (az aks nodepool update --update-cluster-autoscaler --min-count --max-count, "
        "gcloud container clusters update --enable-autoscaling --node-pool --max-nodes, eksctl scale nodegroup "
        "--nodes-max), or lower the steps' requests."
    )
