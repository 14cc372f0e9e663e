"""Pods wait for nodes, and none are added or too few: the cluster's nodes are the limit."""

from harness.analysis.waits.lacking import lacking
from harness.analysis.waits.scheduling_wait import SchedulingWait, scheduling_wait
from harness.detectors.detector import Capability, Evidence, Finding, Timeline, slowed
from harness.detectors.nodes.node_waits import SHARE, waiting_evidence
from harness.reasons.catalogue import SCHEDULER

NAME = "nodes-exhausted"
SEEN = ("real: nodes-full",)
NEEDS = (Capability.RUNS, Capability.PODS, Capability.NODES)
USES = {Capability.POD_EVENTS: "what the nodes ran out of, and whether the autoscaler could add one"}
# Nodes that are full by requests alone need no others.
EXPLAINED_BY = {"autoscaler-at-max": 0.0, "autoscaler-failing": 0.0, "stranded-capacity": 0.7}
OVERSTATED_EARLY = True

_CONFIDENCE_UNSTATED = 0.5  # a taint, a claim or an affinity keeps pods off nodes as well
_DOUBT = Evidence(
    "why the scheduler placed the pods nowhere was not seen: taints, claims or affinity may be the reason"
)
_MIN_SHARE_OF_TIME = 0.3  # of the runs' time
_MIN_SHARE_LACKING = 0.5  # of the nodes that could take the pods: where nodes are full, it is nearly all of them


def detect(timeline: Timeline) -> list[Finding]:
    """Most of the wait for a node passes with none being provisioned, or there would be too few of them anyway."""
    wait = scheduling_wait(timeline)
    late = wait.provisioning > wait.unschedulable
    if wait.share < SHARE or (late and not _too_few(wait)):
        return []
    found = lacking(timeline)
    if found is not None and found.too_large and not wait.grew:
        return []  # the pods that wait fit on no node
    said = wait.lacks or any(str(text).startswith(SCHEDULER) for text in timeline.pods["reason"].cat.categories)
    alone = not said and not len(timeline.others_pods)  # what others request may not be known
    if found is not None and alone and max(found.shares.values(), default=0.0) < _MIN_SHARE_LACKING:
        return []  # nothing says that nodes are full, and by requests they have room
    sure = 0.87 if Capability.POD_EVENTS.observed(timeline) else 0.6
    return [
        Finding(
            NAME,
            f"The nodes are full: runs spent {wait.share:.0%} of their time waiting for a node",
            sure if said else _CONFIDENCE_UNSTATED,
            (*waiting_evidence(timeline, wait), *(() if said else (_DOUBT,))),
            "Add nodes to the steps' pool, let the autoscaler add them, or lower the steps' requests (the report's raw "
            "tables show their actual usage).",
            ("kubectl get nodes -o wide", "kubectl describe nodes | grep -A 8 'Allocated resources'"),
            slowed(wait.unschedulable if late else wait.share),
        )
    ]


def _too_few(wait: SchedulingWait) -> bool:
    """Whether pods wait long for nodes that come, and the autoscaler said that it may add no more of some."""
    return bool(wait.at_max) and wait.grew and wait.provisioning >= _MIN_SHARE_OF_TIME
