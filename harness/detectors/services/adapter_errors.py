"""Adapters answer with errors: executions fail before or after their own work."""

from harness.analysis.waits.stated import words_of
from harness.detectors.detector import Capability, Evidence, Finding, Timeline, broke
from harness.detectors.error_texts import adapter_failures

NAME = "adapter-errors"
NEEDS = (Capability.RUNS,)
TARGETS = ("hetida",)

_NAMED, _PLAIN = 0.92, 0.3  # the confidence where failures name an adapter, and where none does


def detect(timeline: Timeline) -> list[Finding]:
    """Failures in the stages that call adapters; with them, the failures without a message."""
    named, bare = adapter_failures(timeline)
    if not named and not bare:
        return []
    share = (len(named) + len(bare)) / max(len(timeline.runs), 1)
    facts = []
    if named:
        example = words_of(timeline, NAME)
        text = f"{len(named):,} executions failed with “{example[:220]}”"
        facts.append(Evidence(text, float(len(named)), "runs", "events"))
    if bare:
        number = f"{len(bare):,} {'more' if named else 'executions'}"
        text = f"{number} ended with a plain 500, as happens when a data source can't be read"
        facts.append(Evidence(text, float(len(bare)), "runs", "events", "message ~ HTTP 500"))
    return [
        Finding(
            NAME,
            f"Adapters {'' if named else 'may '}return errors: {share:.0%} of the executions failed",
            _NAMED if named else _PLAIN,
            tuple(facts),
            "Check the adapter's log and its limits (database, connection pool, proxy timeout), and load-test it alone "
            "at this rate. The platform does not retry a failed load.",
            (),
            broke(share),
        )
    ]
