"""Runs were still in flight when observation ended: their durations are unknown (right-censored)."""

from harness.analysis.ledger import ledger, removed
from harness.detectors.detector import Capability, Evidence, Finding, Timeline, format_duration, slowed

NAME = "censoring"
NEEDS = (Capability.SUBMISSIONS,)
DOUBT = True


def detect(timeline: Timeline) -> list[Finding]:
    """Accepted runs without an end."""
    counts, loaded = ledger(timeline), bool(timeline.plan.intended)
    share, drain_s = counts.in_flight / max(counts.accepted, 1), timeline.plan.limits.drain_s
    if not counts.in_flight:
        return []
    if loaded:
        runs, without_end, table = "runs", "accepted runs", "submissions"
        fix = "Wait longer for the last runs with --drain, or check the other findings for why they hang."
    else:  # runs of another load, for which the observer does not wait
        runs, without_end, table = "of the observed runs", "runs that began during the observation", "spans"
        fix = "Observe longer with --for, until the last run has ended; otherwise long durations are underestimated."
    facts = [Evidence(f"{share:.1%} of the {without_end} have no end", share, "share", table)]
    if loaded:
        facts.append(Evidence(f"the test waited up to {format_duration(drain_s)} for the last runs", drain_s, "s"))
    if gone := removed(timeline):
        facts.append(Evidence(f"the platform removed {gone:,} of them before their end was seen", gone, table="events"))
        fix += " Let it keep ended runs for longer than the test: ARCHIVED_RUNS_RETENTION_TIME of KFP, Argo's TTL."
    title = f"{counts.in_flight:,} {runs} were still in flight when observation ended"
    return [Finding(NAME, title, 0.95, tuple(facts), fix, (), slowed(0.2))]
