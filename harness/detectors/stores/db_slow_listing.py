"""Listing runs gets slower with every run in the database: for the UI, for clients, and for the database itself."""

import numpy as np

from harness.analysis.stats.trend import trend
from harness.detectors.detector import CannotJudgeError, Capability, Timeline, floats, quarters, slowed
from harness.model import Evidence, Finding, counted, format_duration
from harness.model.phases import LIST_SECONDS

NAME = "db-slow-listing"
NEEDS = (Capability.RUNS, Capability.LISTING)
TARGETS = ("kfp",)

# A page of 200 runs is a few megabytes: serialising and sending it alone may take half a second.
_MIN_PAGE_S = 2.0
_UNUSABLE_S = 20.0  # browsers and proxies commonly time out after twice that or more
_MIN_LISTINGS = 4  # two define a line, and two more contradict it
_QUERIES = ("SELECT COUNT(*) FROM run_details", "SHOW INDEX FROM run_details")


def detect(timeline: Timeline) -> list[Finding]:
    """The duration of the observer's own list requests against the number of stored runs."""
    listed = timeline.metric(LIST_SECONDS)
    at, took = floats(listed, "at_s"), floats(listed, "value")
    if took.size < _MIN_LISTINGS:
        raise CannotJudgeError(f"runs were listed only {counted(took.size, 'time')}")
    created = floats(timeline.runs, "created_s")
    stored = np.searchsorted(np.sort(created[np.isfinite(created)]), at, side="right").astype(np.float64)
    early, late = (float(np.median(quarter)) for quarter in quarters(took))
    answered = floats(timeline.runs, "answered_s") - floats(timeline.runs, "sent_s")
    answered = answered[np.isfinite(answered)]
    submitting = float(np.median(answered)) if answered.size else 0.0
    if late < _MIN_PAGE_S or submitting > late / 2:
        return []  # where all calls are slow, listing is not the cause
    found = trend(stored, took, least=_MIN_LISTINGS)
    grows = found is not None and found.grows
    where = f"metric = {LIST_SECONDS}"
    times = f"{format_duration(early)} at the beginning and {format_duration(late)} at the end"
    statement = f"a page of runs took {times}, a submission {format_duration(submitting)}"
    facts = [Evidence(statement, late, "s", "samples", where)]
    if found is not None and grows:
        growth = f"every 100 more runs add {format_duration(100 * found.slope)}"
        facts.append(Evidence(growth, found.slope, "s", "samples", where))
    mysql = f"kubectl exec -n {timeline.namespace} deploy/mysql -- mysql -u root mlpipeline -e"
    return [
        Finding(
            NAME,
            f"Listing runs takes {format_duration(late)} per page"
            + (" and gets slower with every stored run" if grows else ""),
            0.9 if grows else 0.7,
            tuple(facts),
            "Delete the runs of former tests, set a retention for old runs, check that the runs table has its indexes, "
            "and list small pages of one experiment.",
            tuple(f"{mysql} '{query}'" for query in _QUERIES),
            slowed(late / _UNUSABLE_S),
        )
    ]
