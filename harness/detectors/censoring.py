"""Runs were still going on when the observation ended: how long they take is not known."""

from harness.analysis.ledger import ledger
from harness.analysis.timeline import Timeline
from harness.detectors.detector import SUBMISSIONS, slowed
from harness.model.findings import Evidence, Finding
from harness.model.units import format_duration

NAME = "censoring"
NEEDS = (SUBMISSIONS,)


def detect(timeline: Timeline) -> list[Finding]:
    """Accepted runs without an end."""
    counts = ledger(timeline)
    share = counts.in_flight / max(counts.accepted, 1)
    if not counts.in_flight:
        return []
    if not timeline.plan.intended:
        return [_observed(counts.in_flight, share)]
    drain = timeline.plan.limits.drain_s
    return [
        Finding(
            NAME,
            f"{counts.in_flight:,} runs were not over when the observation ended",
            0.95,
            (
                Evidence(f"{share:.1%} of the accepted runs have no end", share, "share", "submissions"),
                Evidence(f"the test waited {format_duration(drain)} at most for the last runs", drain, "s"),
            ),
            "Wait longer for the last runs with --drain, or find out with the other findings why they hang.",
            (),
            slowed(0.2),
        )
    ]


def _observed(going: int, share: float) -> Finding:
    """Runs of somebody else's load, which nobody waits for."""
    return Finding(
        NAME,
        f"{going:,} of the runs that were observed went on when the observation ended",
        0.95,
        (Evidence(f"{share:.1%} of the runs that began meanwhile have no end", share, "share", "spans"),),
        "Observe longer with --for, until the last run is over; durations of long runs are underestimated else.",
        (),
        slowed(0.2),
    )
