"""Listing runs gets slower with every run that the database keeps: for the UI, for clients, and for the database."""

import numpy as np

from harness.analysis.stats.trend import trend
from harness.analysis.timeline import Timeline, floats
from harness.detectors.detector import LISTING, RUNS, CannotJudgeError, quarters, slowed
from harness.model.findings import Evidence, Finding
from harness.model.phases import LIST_SECONDS
from harness.model.units import counted, format_duration

NAME = "db-slow-listing"
NEEDS = (RUNS, LISTING)
TARGETS = ("kfp",)

# A page of 200 runs is a few megabytes: rendering and sending it may take half a second by itself.
_SLOW_S = 2.0
_UNBEARABLE_S = 20.0  # half of the time after which browsers and proxies commonly give up, or less
_LEAST = 4
_QUESTIONS = ("SELECT COUNT(*) FROM run_details", "SHOW INDEX FROM run_details")


def detect(timeline: Timeline) -> list[Finding]:
    """The observer's own requests for a page of runs, against the number of runs that there were."""
    listed = timeline.metric(LIST_SECONDS)
    at, took = floats(listed, "at_s"), floats(listed, "value")
    if took.size < _LEAST:
        raise CannotJudgeError(f"runs were listed only {counted(took.size, 'time')}")
    created = floats(timeline.runs, "created_s")
    stored = np.searchsorted(np.sort(created[np.isfinite(created)]), at, side="right").astype(np.float64)
    early, late = (float(np.median(each)) for each in quarters(took))
    answered = floats(timeline.runs, "answered_s") - floats(timeline.runs, "sent_s")
    answered = answered[np.isfinite(answered)]
    submitting = float(np.median(answered)) if answered.size else 0.0
    if late < _SLOW_S or submitting > late / 2:
        return []  # where all calls are slow it is not the list
    found = trend(stored, took, least=_LEAST)
    grows = found is not None and found.grows
    where = f"metric = {LIST_SECONDS}"
    spans = f"{format_duration(early)} at the beginning and {format_duration(late)} at the end"
    said = f"a page of runs took {spans}, a submission {format_duration(submitting)}"
    facts = [Evidence(said, late, "s", "samples", where)]
    if found is not None and grows:
        more = f"each further 100 runs add {format_duration(100 * found.slope)}"
        facts.append(Evidence(more, found.slope, "s", "samples", where))
    mysql = f"kubectl exec -n {timeline.namespace} deploy/mysql -- mysql -u root mlpipeline -e"
    return [
        Finding(
            NAME,
            f"Listing runs takes {format_duration(late)} a page"
            + (" and longer with every run that is stored" if grows else ""),
            0.9 if grows else 0.7,
            tuple(facts),
            "Delete the runs of former tests and have old ones deleted, see that the table of runs has its indexes, "
            "and ask for small pages of one experiment.",
            tuple(f"{mysql} '{question}'" for question in _QUESTIONS),
            slowed(late / _UNBEARABLE_S),
        )
    ]
