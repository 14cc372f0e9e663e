"""Steps end long after their main container, and nothing that was observed says whether the store or the node is slow.

Argo's ``wait`` container stores a step's log and outputs after ``main`` has ended; on a slow node it, too, ends late.
"""

from harness.analysis.waits.critical_path import critical_path
from harness.analysis.waits.storing import SLOW, Storing, storing
from harness.detectors.detector import Capability, Evidence, Finding, Timeline, format_duration, slowed
from harness.model.phases import STORING

NAME = "steps-end-late"
NEEDS = (Capability.RUNS, Capability.PODS)
USES = {
    Capability.STORE_REQUESTS: "whether the store or the node is slow",
    Capability.LOGS: "whether the store or the node is slow",
}
TARGETS = ("argo", "kfp")
EXPLAINED_BY = {"store-slow": 0.0, "store-full": 0.0, "store-unreachable-from-old-nodes": 0.0, "cpu-starved": 0.2}
OVERSTATED_EARLY = True

LEAST_S = 2.0  # stamps are whole seconds


def detect(timeline: Timeline) -> list[Finding]:
    """The end of pods is far from the end of their main containers; no log of an upload was read."""
    stored, share = storing(timeline), critical_path(timeline).storing
    if stored.logs or share < SLOW or stored.slow_s < LEAST_S:
        return []
    return [
        Finding(
            NAME,
            f"Steps end late: runs spent {share:.0%} of their time between the end of a step's work and the end "
            "of its pod",
            0.6,
            (_evidence(stored),),
            "Observe the artifact store itself (--store-probe, or its metrics): slow requests mean a slow store. If "
            "they are quick, look at the CPU of the nodes: there, the wait container and the kubelet lack it.",
            (f"kubectl top pods -n {timeline.namespace} --containers", "kubectl top nodes"),
            slowed(share),
        )
    ]


def _evidence(stored: Storing) -> Evidence:
    text = f"from the end of the main container to the end of its pod (p90): {format_duration(stored.slow_s)}"
    return Evidence(text, stored.slow_s, "s", "spans", f"phase = {STORING}")
