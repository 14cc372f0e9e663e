"""Pods that wait for a node: what the detectors of nodes and of the autoscaler have in common."""

from harness.analysis.timeline import peak
from harness.analysis.waits.scheduling_wait import SchedulingWait
from harness.detectors.detector import Evidence, Timeline, floats
from harness.model.phases import CLAIM_FAILED, UNSCHEDULABLE

# Below this share of the runs' time, waiting for a node is not the bottleneck.
SHARE = 0.15
_OF_KARPENTER = ("Nominated", "InsufficientCapacityError", "Launched", "Registered", "Initialized", CLAIM_FAILED)


def status_commands(timeline: Timeline) -> tuple[str, ...]:
    """Commands that show why the autoscaler adds no node: Karpenter's if it was seen, else cluster-autoscaler's."""
    reasons = timeline.events["reason"]
    if reasons.isin(_OF_KARPENTER).any():
        return ("kubectl get nodepools,nodeclaims", "kubectl describe nodepools")
    return ("kubectl -n kube-system get configmap cluster-autoscaler-status -o yaml",)


def waiting_evidence(timeline: Timeline, wait: SchedulingWait) -> tuple[Evidence, ...]:
    """How long pods waited for a node, how many at once, and the reasons that scheduler and autoscaler gave."""
    pods = timeline.stretches(UNSCHEDULABLE)
    most = peak(floats(pods, "start_s"), floats(pods, "end_s"))
    where = f"phase = {UNSCHEDULABLE}"
    facts = [
        Evidence(f"{wait.share:.1%} of all run time was spent waiting for a node", wait.share, "share", "spans", where),
        Evidence(f"up to {most:,} pods waited for a node at once", float(most), "pods", "spans", where),
    ]
    if wait.lacks:
        reasons = ", ".join(f"{reason} ({count:,} times)" for reason, count in wait.lacks[:3])
        facts.append(Evidence(f"scheduler: {reasons}", None, "", "events", "reason = FailedScheduling"))
    if wait.at_max:
        facts.append(Evidence(f"autoscaler: {wait.at_max}", None, "", "events", "reason ~ ScaleUp"))
    return tuple(facts)
