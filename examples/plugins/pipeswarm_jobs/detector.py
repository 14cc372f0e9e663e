"""The detector: jobs wait longer and longer, because they arrive faster than they are done."""

from pipeswarm import CannotJudgeError, Capability, Evidence, Finding, Timeline
from pipeswarm_jobs.collector import WAITING

NAME = "growing-queue"
NEEDS = (Capability.SUBMISSIONS,)
TARGETS = ("jobs",)

_FEWEST = 8


def detect(timeline: Timeline) -> list[Finding]:
    """Compares the number of waiting jobs in the first and in the last quarter of the submissions."""
    samples = timeline.metric(WAITING)
    while_submitting = samples[samples["at_s"].between(0.0, timeline.runs["due_s"].max())]["value"].tolist()
    if len(while_submitting) < _FEWEST:
        raise CannotJudgeError(f"the queue was sampled fewer than {_FEWEST} times while jobs were submitted")
    quarter = len(while_submitting) // 4
    early, late = max(while_submitting[:quarter]), min(while_submitting[-quarter:])
    if late <= early:
        return []
    return [
        Finding(
            NAME,
            "Jobs arrive faster than the service completes them",
            0.7,
            (
                Evidence(
                    f"at least {late:g} jobs waited in the last quarter, at most {early:g} in the first",
                    late,
                    "jobs",
                    "samples",
                ),
            ),
            "Add workers to the queue, or submit more slowly.",
            ("jobsctl scale --queue default --workers 2",),
            0.3,
        )
    ]
