"""Adapters answer with errors: executions fail before or after their own work."""

import re

from harness.analysis.timeline import Timeline
from harness.analysis.waits.failures import failures
from harness.detectors.detector import RUNS, broke
from harness.model.findings import Evidence, Finding

NAME = "adapter-errors"
NEEDS = (RUNS,)
TARGETS = ("hetida",)

# hetida designer names the stage and the exception; a source that is down ends as a plain 500 of the runtime.
SAID = re.compile(r"LOADING_DATA_FROM_ADAPTERS|SENDING_DATA_TO_ADAPTERS|Adapter\w*(?:Exception|Error)")
BARE = re.compile(r"HTTP 500 · (?:Internal Server Error|Failure while calling the runtime)")
_LEAST = 0.005


def detect(timeline: Timeline) -> list[Finding]:
    """Failures in the stages that talk to adapters; with them, those that broke without a word."""
    bad = failures(timeline)
    said = [f for f in bad if f.says(SAID)]
    bare = [f for f in bad if f.says(BARE) and not f.says(SAID)]
    share = (len(said) + len(bare)) / max(len(timeline.runs), 1)
    if not said or share < _LEAST:
        return []
    example = next(t for t in said[0].texts if SAID.search(t))
    facts = [Evidence(f"{len(said):,} executions failed with “{example[:220]}”", float(len(said)), "runs", "events")]
    if bare:
        text = f"{len(bare):,} more ended with a plain 500, as they do when a source can't be read"
        facts.append(Evidence(text, float(len(bare)), "runs", "events", "message ~ HTTP 500"))
    return [
        Finding(
            NAME,
            f"The adapters answer with errors: {share:.0%} of the executions failed because of it",
            0.92,
            tuple(facts),
            "Look at the adapter's own log and limits (its database, its connection pool, a proxy's time limit); test "
            "it alone at this rate. The platform does not repeat a failed load.",
            (),
            broke(share),
        )
    ]
