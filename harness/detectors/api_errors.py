"""The API server refuses submissions or does not answer."""

from harness.analysis.timeline import Timeline, floats
from harness.analysis.waits.failures import group
from harness.detectors import database
from harness.detectors.detector import SUBMISSIONS, broke
from harness.model.findings import Evidence, Finding
from harness.model.records import Outcome

NAME = "api-errors"
NEEDS = (SUBMISSIONS,)

_LEAST = 0.005
_MOST_GROUPS = 4


def detect(timeline: Timeline) -> list[Finding]:
    """Rejected submissions, grouped by status and message; those that the database explains are its detectors'."""
    runs = timeline.runs
    refused = runs[(runs["outcome"] == Outcome.REJECTED.value) & ~runs["error"].str.contains(database.TROUBLES)]
    share = len(refused) / max(len(runs), 1)
    if share < _LEAST:
        return []
    statuses = refused["status"].astype("string").fillna("no answer")
    groups = group(
        (at, f"{status}: {error}")
        for at, status, error in zip(floats(refused, "due_s").tolist(), statuses, refused["error"], strict=True)
    )
    counted = ", ".join(f"{status} ({count:,})" for status, count in sorted(statuses.value_counts().items(), key=str))
    facts = [Evidence(f"answers: {counted}", float(len(refused)), "submissions", "submissions", "outcome = rejected")]
    facts += [Evidence(f"{g.count:,} times “{g.example[:200]}”", float(g.count)) for g in groups[:_MOST_GROUPS]]
    return [
        Finding(
            NAME,
            f"The API server refused {share:.1%} of the submissions",
            0.9,
            tuple(facts),
            "Look at the API server's log and limits: memory, CPU, its database, a proxy in front of it.",
            (
                f"kubectl logs -n {timeline.namespace} deployment/ml-pipeline --since=1h | grep -i error | tail -50",
                f"kubectl top pods -n {timeline.namespace}",
            ),
            broke(share),
        )
    ]
