"""Nodes do come, but late: most of the wait for room passes while one is on its way."""

from harness.analysis.capacity.autoscaling import provisioning_times
from harness.analysis.timeline import Timeline
from harness.analysis.waits.scheduling_wait import scheduling_wait
from harness.detectors.detector import NODES, PODS, RUNS, CannotJudgeError, slowed
from harness.detectors.nodes_exhausted import SHARE, decisions_seen, sure, waiting_evidence
from harness.model.findings import Evidence, Finding
from harness.model.units import format_duration

NAME = "autoscaler-slow"
NEEDS = (RUNS, PODS, NODES)


def detect(timeline: Timeline) -> list[Finding]:
    """Provisioning takes more of the runs' time than waiting with no node on its way."""
    found = scheduling_wait(timeline)
    if found.share >= SHARE and not decisions_seen(timeline) and not found.refused:
        raise CannotJudgeError("whether nodes were on their way is known from events of pods, and none were observed")
    if found.share < SHARE or found.provisioning <= found.unschedulable or found.refused:
        return []
    times = provisioning_times(timeline)
    taken = f" (half of them took {format_duration(found.coming_s)} or more)" if found.coming_s is not None else ""
    return [
        Finding(
            NAME,
            f"New nodes come late: runs spent {found.provisioning:.0%} of their time waiting for nodes on their way",
            sure(0.85, found),
            (
                *waiting_evidence(timeline, found),
                Evidence(f"{times.size} nodes were asked for and came{taken}", found.coming_s, "s", "nodes"),
            ),
            "Keep warm capacity: a higher minimum of the pool or low-priority placeholder pods; choose a machine type "
            "and image that start quickly; spread the load, so that the first wave does not wait for the last node.",
            ("kubectl get events -A --field-selector reason=TriggeredScaleUp",),
            slowed(found.provisioning * found.working),
        )
    ]
