"""Runs were answered from the platform's cache in whole or in part: less was worked than was asked for."""

from harness.analysis.timeline import Timeline
from harness.analysis.waits.cached import runs_with_cached_tasks
from harness.detectors.detector import RUNS, broke
from harness.model.findings import Evidence, Finding
from harness.model.phases import SKIPPED

NAME = "caching"
NEEDS = (RUNS,)
TARGETS = ("kfp",)


def detect(timeline: Timeline) -> list[Finding]:
    """Runs that were skipped as a whole, and runs of which a task was not executed."""
    whole, part = int((timeline.runs["state"] == SKIPPED).sum()), int(runs_with_cached_tasks(timeline).size)
    if not whole + part:
        return []
    share = (whole + part) / max(len(timeline.runs), 1)
    facts = (
        Evidence(f"{whole:,} runs were skipped as a whole", float(whole), "runs", "events", f"reason = {SKIPPED}"),
        Evidence(f"of {part:,} runs at least one task had a driver and no executor", float(part), "runs", "spans"),
    )
    return [
        Finding(
            NAME,
            f"{share:.0%} of the runs were answered from the cache: the platform worked less than it was asked to",
            0.95,
            tuple(fact for fact in facts if fact.value),
            "Turn the cache off for the test (--caching off), or give each run parameters of its own.",
            (),
            broke(share),
        )
    ]
