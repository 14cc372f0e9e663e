"""The autoscaler requests machines and does not get them."""

from harness.analysis.waits.scheduling_wait import scheduling_wait
from harness.detectors.detector import Capability, Evidence, Finding, Timeline, slowed
from harness.detectors.nodes import node_waits
from harness.detectors.nodes.node_waits import SHARE, waiting_evidence

NAME = "autoscaler-failing"
NEEDS = (Capability.RUNS, Capability.PODS, Capability.NODES, Capability.POD_EVENTS)


def detect(timeline: Timeline) -> list[Finding]:
    """It reported a failed scale-up, and pods wait for nodes."""
    wait = scheduling_wait(timeline)
    if wait.share < SHARE or not wait.refused:
        return []
    return [
        Finding(
            NAME,
            f"The autoscaler can't get machines: runs spent {wait.share:.0%} of their time waiting for a node",
            0.9,
            (Evidence(f"autoscaler: “{wait.refused}”", None, "", "events"), *waiting_evidence(timeline, wait)),
            "Raise the cloud quota, choose a machine type or zone with capacity, or let the autoscaler fall back to "
            "another pool.",
            node_waits.status_commands(timeline),
            slowed(wait.share),
        )
    ]
