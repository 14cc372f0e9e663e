"""The API server rejects submissions or does not answer."""

from harness.analysis.refused_credentials import is_refused
from harness.analysis.timeline import Timeline, floats
from harness.analysis.waits.failures import group
from harness.analysis.waits.stated import refused_for_others
from harness.detectors.capability import Capability
from harness.detectors.detector import broke
from harness.detectors.error_texts import is_limited
from harness.model.findings import Evidence, Finding
from harness.model.records import Outcome

NAME = "api-errors"
SEEN = ("real: api-restarted",)
NEEDS = (Capability.SUBMISSIONS,)
FAULTS = ("api-errors",)

_LEAST = 0.005
_MOST_GROUPS = 4


def detect(timeline: Timeline) -> list[Finding]:
    """Rejected submissions by status and message; those of another finding belong to that one."""
    runs = timeline.runs
    others = refused_for_others(timeline) | is_refused(runs) | is_limited(runs)
    rejected = runs[(runs["outcome"] == Outcome.REJECTED.value) & ~others]
    share = len(rejected) / max(len(runs), 1)
    if share < _LEAST:
        return []
    statuses = rejected["status"].astype("string").fillna("no answer")
    groups = group(
        (at, f"{status}: {error}")
        for at, status, error in zip(floats(rejected, "due_s").tolist(), statuses, rejected["error"], strict=True)
    )
    counted = ", ".join(f"{status} ({count:,})" for status, count in sorted(statuses.value_counts().items(), key=str))
    facts = [Evidence(f"statuses: {counted}", float(len(rejected)), "submissions", "submissions", "outcome = rejected")]
    facts += [Evidence(f"{g.count:,} times: “{g.example[:200]}”", float(g.count)) for g in groups[:_MOST_GROUPS]]
    return [
        Finding(
            NAME,
            f"The API server rejected {share:.1%} of the submissions",
            0.9,
            tuple(facts),
            "Check the API server's log and its limits: memory, CPU, database, and any proxy in front of it.",
            (
                f"kubectl logs -n {timeline.namespace} deployment/ml-pipeline --since=1h | grep -i error | tail -50",
                f"kubectl top pods -n {timeline.namespace}",
            ),
            broke(len(rejected) / len(runs)),
        )
    ]
