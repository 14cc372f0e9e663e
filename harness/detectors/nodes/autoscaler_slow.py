"""New nodes take long: most of the wait for a node passes while one is being provisioned."""

from harness.analysis.capacity.autoscaling import provisioning_times
from harness.analysis.waits.scheduling_wait import scheduling_wait
from harness.detectors.detector import CannotJudgeError, Capability, Timeline, format_duration, slowed
from harness.detectors.nodes.node_waits import SHARE, waiting_evidence
from harness.model.findings import Evidence, Finding

NAME = "autoscaler-slow"
NEEDS = (Capability.RUNS, Capability.PODS, Capability.NODES)
USES = {Capability.POD_EVENTS: "whether nodes were being provisioned"}
EXPLAINED_BY = {"autoscaler-failing": 0.0}
OVERSTATED_EARLY = True


def detect(timeline: Timeline) -> list[Finding]:
    """Runs wait longer with a node being provisioned than without, or long for nodes that come."""
    wait = scheduling_wait(timeline)
    if wait.share >= SHARE and not Capability.POD_EVENTS.observed(timeline) and not wait.refused:
        raise CannotJudgeError("pod events show whether nodes were being provisioned, and none were observed")
    if wait.share < SHARE or wait.provisioning <= min(wait.unschedulable, SHARE):
        return []
    times = provisioning_times(timeline)
    median = f" (median {format_duration(wait.coming_s)} until ready)" if wait.coming_s is not None else ""
    return [
        Finding(
            NAME,
            f"Nodes are slow to provision: runs spent {wait.provisioning:.0%} of their time waiting for new nodes",
            0.85,
            (
                *waiting_evidence(timeline, wait),
                Evidence(f"{times.size} requested nodes were provisioned{median}", wait.coming_s, "s", "nodes"),
            ),
            "Keep warm capacity: a higher minimum of the pool, or low-priority placeholder pods. Choose a machine type "
            "and image that start quickly. Spread the load, so that the first wave does not wait for the last node.",
            ("kubectl get events -A --field-selector reason=TriggeredScaleUp",),
            slowed(wait.provisioning),
        )
    ]
