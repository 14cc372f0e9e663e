"""Pods wait for room and nobody brings any: the cluster's nodes are the limit."""

from harness.analysis.timeline import Timeline, floats
from harness.analysis.timeline.curves import peak
from harness.analysis.waits.scheduling_wait import SchedulingWait, scheduling_wait
from harness.detectors.detector import NODES, PODS, RUNS, slowed
from harness.model.findings import Evidence, Finding
from harness.model.phases import UNSCHEDULABLE

NAME = "nodes-exhausted"
NEEDS = (RUNS, PODS, NODES)

# Below this share of the runs' time, waiting for room is not what holds a platform back.
SHARE = 0.15
_WORKING = 0.6  # of the time that pods have a node


def detect(timeline: Timeline) -> list[Finding]:
    """Most of the wait for room passes with no node on its way, and none came during the test."""
    found = scheduling_wait(timeline)
    if found.share < SHARE or found.provisioning > found.unschedulable or found.refused:
        return []
    if found.at_max and found.grew:
        return []  # the autoscaler did what it may
    return [
        Finding(
            NAME,
            f"The nodes are full: runs spent {found.share:.0%} of their time waiting for room",
            sure(0.85 if decisions_seen(timeline) else 0.6, found),
            waiting_evidence(timeline, found),
            "Add nodes to the pool the steps run on, or let the autoscaler do it; or let the steps request less "
            "(what a step really uses is in the report's raw tables).",
            ("kubectl get nodes -o wide", "kubectl describe nodes | grep -A 8 'Allocated resources'"),
            slowed(found.share * found.working),
        )
    ]


def decisions_seen(timeline: Timeline) -> bool:
    """Whether the autoscaler could be heard: it says what it does in events of the pods that wait."""
    return bool((timeline.events["kind"] == "Pod").any())


def sure(confidence: float, found: SchedulingWait) -> float:
    """Pods that pull or store hold their room without working: more nodes would not end what they wait for."""
    return confidence if found.working >= _WORKING else 0.4


def waiting_evidence(timeline: Timeline, found: SchedulingWait) -> tuple[Evidence, ...]:
    """How many pods waited at once, for what, and how much of the time that took."""
    pods = timeline.stretches(UNSCHEDULABLE)
    most = peak(floats(pods, "start_s"), floats(pods, "end_s"))
    facts = [
        Evidence(
            f"{found.share:.1%} of all runs' time passed while their pods found no node",
            found.share, "share", "spans", f"phase = {UNSCHEDULABLE}",
        ),
        Evidence(f"{most:,} pods waited for room at once", float(most), "pods", "spans", f"phase = {UNSCHEDULABLE}"),
    ]  # fmt: skip
    if found.lacks:
        said = ", ".join(f"{what} ({count:,} times)" for what, count in found.lacks[:3])
        facts.append(Evidence(f"the scheduler said: {said}", None, "", "events", "reason = FailedScheduling"))
    if found.at_max:
        facts.append(Evidence(f"the autoscaler said: {found.at_max}", None, "", "events", "reason ~ ScaleUp"))
    return tuple(facts)
