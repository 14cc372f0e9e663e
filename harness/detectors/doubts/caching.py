"""The platform answered runs from its cache, in whole or in part: it did less work than the test asked for."""

from harness.analysis.waits.cached import caching
from harness.detectors.detector import CannotJudgeError, Capability, Evidence, Finding, Timeline, broke, counted
from harness.model.phases import SKIPPED, SUCCEEDED

NAME = "caching"
NEEDS = (Capability.RUNS,)
DOUBT = True
USES = {Capability.PODS: "the runs whose task details were not read"}
TARGETS = ("kfp", "argo")

_OFF = {
    "kfp": "Turn caching off for the test (--caching off)",
    "argo": "Leave memoize out of the templates for the test",
}


def detect(timeline: Timeline) -> list[Finding]:
    """Runs that were skipped as a whole, and runs in which a task was not executed."""
    found, runs = caching(timeline), timeline.runs
    whole, part = int((runs["state"] == SKIPPED).sum()), found.cached.size
    if not whole + part:
        if (runs["state"] == SUCCEEDED).any() and not found.judged.size:
            raise CannotJudgeError(
                "whether tasks came from the cache shows in the runs' task details or in their pods, and neither was "
                "observed of a run that succeeded"
            )
        return []
    share = (whole + part) / (whole + found.judged.size)
    saved = int(found.tasks.sum())
    spared = f", which spared it {counted(saved, 'task')}" if saved else ""
    facts = (
        Evidence(f"{whole:,} runs were skipped entirely", float(whole), "runs", "events", f"reason = {SKIPPED}"),
        Evidence(
            f"a task came from the cache in {part:,} of {counted(found.judged.size, 'run')} whose tasks were observed",
            float(part), "runs", "spans",
        ),
        Evidence(f"{counted(saved, 'task')} of these runs were not executed", float(saved), "tasks", "spans"),
    )  # fmt: skip
    return [
        Finding(
            NAME,
            f"{share:.0%} of the runs were answered from the cache{spared}: "
            "the platform did less work than the test asked for",
            0.95,
            tuple(fact for fact in facts if fact.value),
            f"{_OFF[timeline.plan.target]}, or give each run its own parameters.",
            (),
            broke(share),
        )
    ]
