"""Did the test apply the load it promised? If not, there is no verdict on the platform."""

from harness.analysis.lateness import judged_lateness
from harness.analysis.ledger import in_words, ledger, missing, removed
from harness.analysis.refused_credentials import refused_credentials
from harness.analysis.timeline import CLOCK_STEPPED, TEST_STARTED, WORKER_LOST, Timeline, floats, remembered
from harness.analysis.timeline.clocks import step
from harness.analysis.waits.cached import runs_with_cached_tasks
from harness.model import Outcome, Validity, counted, format_duration
from harness.model.phases import SKIPPED

CENSORED_RATIO = 0.01
REFUSED_RATIO = 0.005


@remembered
def validity(timeline: Timeline) -> Validity:
    """Every reason why the load was not the promised one, and the figures it was judged by."""
    counts = ledger(timeline)
    late = judged_lateness(timeline)
    lost = timeline.events_of("Test", WORKER_LOST)
    cached = int((timeline.runs["state"] == SKIPPED).sum()) + runs_with_cached_tasks(timeline).size
    censored = counts.in_flight / counts.accepted if counts.accepted else 0.0
    ambiguous = _ambiguous(timeline)
    reasons = [*ambiguous]
    if not len(timeline.runs):
        reasons.append("nothing was submitted and no run was observed")
    if counts.unaccounted:
        reasons.append(_unaccounted(timeline, counts.unaccounted))
    if counts.missed:
        reasons.append(f"{counts.missed:,} of {counts.intended:,} arrivals were never sent{_why_missed(timeline)}")
    reasons += late.reasons
    if len(lost):
        reasons.append(f"{len(lost)} load generator worker(s) lost: {', '.join(sorted(set(lost['message'])))}")
    if cached:
        reasons.append(f"{cached:,} runs came from the cache, in whole or in part: their cost is unknown")
    if censored > CENSORED_RATIO:
        gone = f" ({removed(timeline):,} were removed before)" if removed(timeline) else ""
        reasons.append(
            f"{counts.in_flight:,} accepted runs ({censored:.1%}) had not finished when the observation ended{gone}, "
            f"limit {CENSORED_RATIO:.0%}"
        )
    reasons += _refused(timeline)
    reasons += _clock_steps(timeline)
    if timeline.interrupted:
        reasons.append("the test was interrupted")
    figures = {"late_p50_s": late.p50_s, "late_p99_s": late.p99_s, "late_max_s": late.max_s, "censored_ratio": censored}
    return Validity(tuple(reasons), figures, "".join(ambiguous[:1]))


def _refused(timeline: Timeline) -> list[str]:
    """A load whose credentials expired is not the promised one, whatever the platform would have done."""
    refused = refused_credentials(timeline)
    if refused is None or refused.share <= REFUSED_RATIO:
        return []
    return [
        (
            f"{refused.count:,} submissions ({refused.share:.1%}) were refused for the load generator's own "
            f"credentials, the first {format_duration(max(refused.from_s, 0.0))} into the test, "
            f"limit {REFUSED_RATIO:.1%}"
        )
    ]


def _clock_steps(timeline: Timeline) -> list[str]:
    """Clocks that were set during the test: durations between timestamps of two clocks are wrong from then on."""
    runs = timeline.runs
    found = [f"{told}: durations are wrong" for told in timeline.events_of("Test", CLOCK_STEPPED)["message"]]
    by_s = step(*(floats(runs, name) for name in ("sent_s", "answered_s", "created_s")))
    if by_s:
        found.append(
            f"the platform's clock stepped by about {by_s:+.0f} s against the load generator's: durations are wrong"
        )
    return found


def _ambiguous(timeline: Timeline) -> list[str]:
    """Why it is unknown which run belongs to which arrival. A sound platform gives each its own id."""
    runs, found = timeline.runs, []
    accepted = runs.loc[runs["outcome"] == Outcome.ACCEPTED.value, ["run", "status", "error"]]
    ids = accepted["run"].nunique()
    if ids < len(accepted):
        found.append(f"{len(accepted):,} accepted submissions were answered with only {ids:,} different run ids")
    if timeline.twins:
        found.append(
            f"{counted(timeline.twins, 'more run')} with names of this test's runs appeared on the platform: "
            "submissions were doubled on their way or by the platform, or another test sends the same scenarios"
        )
    nameless = int((accepted["status"].notna() & (accepted["error"] != "")).sum())
    if nameless:
        told = counted(nameless, "submission")
        found.append(f"{told} had an answer without a run id: the runs were found by name only")
    return found


def _unaccounted(timeline: Timeline, count: int) -> str:
    if count < 0:
        return f"{-count:,} more arrivals were recorded than intended"
    listed = in_words(missing(timeline))
    started = "" if len(timeline.events_of("Test", TEST_STARTED)) else " (the load did not record its start)"
    return f"{count:,} arrivals are unaccounted for: seq {listed}{started}"


def _why_missed(timeline: Timeline) -> str:
    errors = timeline.runs["error"][timeline.runs["outcome"] == "missed"]
    causes = sorted({text for text in errors if text})
    return f": {causes[0]}" if causes else ""
