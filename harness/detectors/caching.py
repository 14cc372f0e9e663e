"""The platform answered runs from its cache, in whole or in part: it did less work than the test asked for."""

from harness.analysis.timeline import Timeline
from harness.analysis.waits.cached import runs_with_cached_tasks
from harness.detectors.capability import Capability
from harness.detectors.detector import broke
from harness.model.findings import Evidence, Finding
from harness.model.phases import SKIPPED

NAME = "caching"
NEEDS = (Capability.RUNS,)
TARGETS = ("kfp",)
NOT_INJECTED = "it is a property of the pipeline and the scenarios"


def detect(timeline: Timeline) -> list[Finding]:
    """Runs that were skipped as a whole, and runs in which a task was not executed."""
    whole, part = int((timeline.runs["state"] == SKIPPED).sum()), int(runs_with_cached_tasks(timeline).size)
    if not whole + part:
        return []
    share = (whole + part) / max(len(timeline.runs), 1)
    facts = (
        Evidence(f"{whole:,} runs were skipped entirely", float(whole), "runs", "events", f"reason = {SKIPPED}"),
        Evidence(f"{part:,} runs have a task with a driver and no executor", float(part), "runs", "spans"),
    )
    return [
        Finding(
            NAME,
            f"{share:.0%} of the runs were answered from the cache: the platform did less work than the test asked for",
            0.95,
            tuple(fact for fact in facts if fact.value),
            "Turn caching off for the test (--caching off), or give each run its own parameters.",
            (),
            broke(share),
        )
    ]
