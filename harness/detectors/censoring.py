"""Runs were still in flight when observation ended: their durations are unknown (right-censored)."""

from harness.analysis.ledger import ledger
from harness.analysis.timeline import Timeline
from harness.detectors.capability import Capability
from harness.detectors.detector import slowed
from harness.model.findings import Evidence, Finding
from harness.model.units import format_duration

NAME = "censoring"
NEEDS = (Capability.SUBMISSIONS,)
DOUBT = True
NOT_INJECTED = "it comes from the test's own limits"


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
            f"{counts.in_flight:,} runs were still in flight when observation ended",
            0.95,
            (
                Evidence(f"{share:.1%} of the accepted runs have no end", share, "share", "submissions"),
                Evidence(f"the test waited up to {format_duration(drain)} for the last runs", drain, "s"),
            ),
            "Wait longer for the last runs with --drain, or check the other findings for why they hang.",
            (),
            slowed(0.2),
        )
    ]


def _observed(in_flight: int, share: float) -> Finding:
    """Runs of another load, for which the observer does not wait."""
    return Finding(
        NAME,
        f"{in_flight:,} of the observed runs were still in flight when observation ended",
        0.95,
        (Evidence(f"{share:.1%} of the runs that began during the observation have no end", share, "share", "spans"),),
        "Observe longer with --for, until the last run has ended; otherwise long durations are underestimated.",
        (),
        slowed(0.2),
    )
