"""Nodes run short of memory or disk, and their kubelets evict steps."""

import re

from harness.analysis.timeline import Timeline
from harness.analysis.waits.failures import failures, own_events
from harness.detectors.capability import Capability
from harness.detectors.detector import broke, slowed
from harness.detectors.error_texts import NODE_PRESSURE, require_reasons
from harness.model.findings import Evidence, Finding

NAME = "node-pressure"
NEEDS = (Capability.RUNS,)
USES = {
    Capability.POD_EVENTS: "evictions that a retry made good",
    Capability.WORKFLOWS: "the runs whose pods were gone before they were seen",
}
FAULTS = ("node-pressure",)

_RESOURCE = re.compile(r"low on resource: ([\w-]+)", re.IGNORECASE)
_FIXES = {
    "memory": "Set the steps' memory requests to what they use, so that the scheduler leaves room for them; pods that "
    "use more than they requested are evicted first.",
    "ephemeral-storage": "Request ephemeral storage for steps that write much to their own disk, or give the nodes "
    "larger disks.",
}


def detect(timeline: Timeline) -> list[Finding]:
    """Evictions by a kubelet: the pod says for lack of what, and its node of the workflow says it too."""
    events = own_events(timeline)
    evicted = events[(events["reason"] == "Evicted") & (events["kind"] == "Pod")]
    pressed = evicted[evicted["message"].fillna("").str.contains(NODE_PRESSURE)]
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
