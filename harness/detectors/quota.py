"""A namespace's resource quota rejects pods."""

from harness.analysis.timeline import Timeline
from harness.analysis.waits.failures import own_events
from harness.detectors.capability import Capability
from harness.detectors.detector import slowed
from harness.detectors.error_texts import QUOTA_EXCEEDED
from harness.model.findings import Evidence, Finding
from harness.model.inert import shell_word

NAME = "quota"
NEEDS = (Capability.RUNS, Capability.WORKFLOWS)
FAULTS = ("quota",)


def detect(timeline: Timeline) -> list[Finding]:
    """The API server's refusal, in the message of a waiting node of the workflow.

    Argo writes no event about it, and the run goes on when there is room: nothing fails.
    """
    own = own_events(timeline)
    refused = own[[bool(QUOTA_EXCEEDED.search(text)) for text in own["message"].fillna("").astype(str)]]
    if not len(refused):
        return []
    example = str(refused["message"].iloc[0])
    found = QUOTA_EXCEEDED.search(example)
    name = (found[1] if found else "") or "quota"
    runs = float(refused["run"].nunique())
    said = f"pods of {runs:,.0f} runs that were looked at had to wait: “{example[:240]}”"
    return [
        Finding(
            NAME,
            f"The namespace's quota ({name}) rejects pods, and their runs wait",
            0.95,
            (Evidence(said, runs, "runs", "events", "reason = PENDING"),),
            "Raise the quota, or run fewer pods at once.",
            (
                f"kubectl describe resourcequota -n {timeline.namespace}",
                f"kubectl edit resourcequota {shell_word(name)} -n {timeline.namespace}",
            ),
            slowed(0.5),
        )
    ]
