"""The detector: jobs wait longer and longer, because they arrive faster than they are done."""

from pipeswarm import CannotJudgeError, Capability, Evidence, Finding, Timeline
from pipeswarm_jobs.collector import WAITING

NAME = "growing-queue"
NEEDS = (Capability.SUBMISSIONS,)
NOT_INJECTED = "the simulated platforms have no job queue"
TARGETS = ("jobs",)

_FEWEST = 4


def detect(timeline: Timeline) -> list[Finding]:
    """Compares the number of waiting jobs in the first and in the second half of the submissions."""
    samples = timeline.metric(WAITING)
    while_submitting = samples[samples["at_s"] <= timeline.runs["due_s"].max()]["value"].tolist()
    if len(while_submitting) < _FEWEST:
        raise CannotJudgeError(f"the queue was sampled fewer than {_FEWEST} times while jobs were submitted")
    half = len(while_submitting) // 2
    early, late = max(while_submitting[:half]), min(while_submitting[half:])
    if late <= early:
        return []
    return [
        Finding(
            NAME,
            "Jobs arrive faster than the service completes them",
            0.7,
            (
                Evidence(
                    f"at least {late:g} jobs waited in the second half, at most {early:g} before",
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
