"""Nodes run short of memory or disk, and their kubelets evict steps."""

import re
from collections.abc import Iterable, Iterator

from harness.analysis.cost.requested import requests_by
from harness.analysis.timeline import Timeline, floats
from harness.analysis.waits.failures import failures, own_events
from harness.detectors.capability import Capability
from harness.detectors.detector import broke, slowed
from harness.detectors.error_texts import NODE_PRESSURE, require_reasons
from harness.model.findings import Evidence, Finding
from harness.model.phases import REQUESTED_EPHEMERAL_BYTES
from harness.model.units import format_bytes

NAME = "node-pressure"
NEEDS = (Capability.RUNS,)
USES = {
    Capability.POD_EVENTS: "evictions that a retry made good",
    Capability.WORKFLOWS: "the runs whose pods were gone before they were seen",
}
FAULTS = ("node-pressure",)

_EPHEMERAL = "ephemeral-storage"
_RESOURCE = re.compile(r"low on resource: ([\w-]+)", re.IGNORECASE)
_FIXES = {
    "memory": "Set the steps' memory requests to what they use, so that the scheduler leaves room for them; pods that "
    "use more than they requested are evicted first.",
    _EPHEMERAL: "Request ephemeral storage for steps that write much to their own disk, or give the nodes "
    "larger disks.",
}


def detect(timeline: Timeline) -> list[Finding]:
    """Evictions by a kubelet: the pod says for lack of what, and its node of the workflow says it too."""
    events = own_events(timeline)
    evicted = events[(events["reason"] == "Evicted") & (events["kind"] == "Pod")]
    pressed = evicted[evicted["message"].str.contains(NODE_PRESSURE)]
    failed = [f for f in failures(timeline) if f.says(NODE_PRESSURE)]
    if not len(pressed) and not failed:
        require_reasons(timeline)
        return []
    texts = [*pressed["message"], *(text for f in failed for text in f.texts if NODE_PRESSURE.search(text))]
    found = _RESOURCE.search(str(texts[0]))
    resource = found[1].lower() if found else "memory"
    share, pods = len(failed) / max(len(timeline.runs), 1), float(pressed["object"].nunique())
    facts = [Evidence(f"{pods:,.0f} pods were evicted: “{texts[0][:240]}”", pods, "pods", "events", "reason = Evicted")]
    if failed:
        facts.append(
            Evidence(f"{len(failed):,} runs ({share:.1%}) failed because of it", share, "share", "events", "kind = Run")
        )
    if resource == _EPHEMERAL:
        steps = {*timeline.pods_called(pressed["object"])["task"].astype(str), *(t for f in failed for t in f.tasks)}
        facts.extend(_asked(timeline, steps))
    return [
        Finding(
            NAME,
            f"Nodes ran short of {resource} and evicted steps: {share:.0%} of the runs failed because of it",
            0.95,
            tuple(facts),
            _FIXES.get(resource, f"Give the nodes more {resource}, or place fewer pods on each."),
            (f"kubectl get events -n {timeline.namespace} --field-selector reason=Evicted", "kubectl describe nodes"),
            broke(share) if failed else slowed(0.3),
        )
    ]


def _asked(timeline: Timeline, steps: Iterable[str]) -> Iterator[Evidence]:
    """What the evicted steps request of the ephemeral storage that a node can allocate, where both were observed."""
    asked, most = dict(requests_by(timeline, REQUESTED_EPHEMERAL_BYTES, "task")), floats(timeline.nodes, "ephemeral")
    room = f"the nodes can allocate up to {format_bytes(float(most.max(initial=0.0)))} each"
    for step in sorted(asked.keys() & set(steps)) if most.any() else ():
        amount = format_bytes(asked[step]) if asked[step] else "none"
        yield Evidence(
            f"{step} requests {amount} of ephemeral storage; {room}",
            asked[step], "B", "samples", f"metric = {REQUESTED_EPHEMERAL_BYTES}",
        )  # fmt: skip
