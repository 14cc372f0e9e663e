"""The load generator itself was late or short of CPU: what it measured may be itself."""

import numpy as np

from harness.analysis.timeline import Timeline, floats
from harness.analysis.validity import LAG_MAX_S, LAG_P50_S, LAG_P99_S, lateness
from harness.detectors.detector import SUBMISSIONS, slowed
from harness.model.findings import Evidence, Finding
from harness.model.phases import GENERATOR_CPU
from harness.model.units import format_duration

NAME = "generator-lag"
NEEDS = (SUBMISSIONS,)

_CPU = 0.7
_OFTEN, _LEAST = 0.1, 5  # of a worker's samples, of which a short moment fills one
_SHARE = 0.1  # of what is measured
_VALID = 0.05  # of the runs' time, in a valid test: less than any bottleneck costs


def detect(timeline: Timeline) -> list[Finding]:
    """Arrivals left later than a valid test allows, or so late that it shows in what the test is about.

    That is how long runs take, from due to over; the answer to a submission only where nothing else was observed. A lag
    of milliseconds beside minutes distorts nothing, however quickly the API answers. Nor does it reshape the load where
    it is longer than the gaps between arrivals: runs that last much longer than the lag are there together anyway.
    """
    late = lateness(timeline)
    late = late[np.isfinite(late)]
    if not late.size:
        return []
    p50, p99, most = (float(v) for v in np.quantile(late, (0.5, 0.99, 1.0)))
    invalid = p50 > LAG_P50_S or p99 > LAG_P99_S or most > LAG_MAX_S
    measured = _measured(timeline)
    facts = []
    if invalid:
        lags = (format_duration(each) for each in (p50, p99, most))
        facts.append(_fact("arrivals left {} late (p50), {} (p99), {} at most".format(*lags), p99))
    elif p99 > LAG_P50_S and p99 > _SHARE * measured:
        share = f"{p99 / measured:.0%} of what a run typically takes ({format_duration(measured)})"
        facts.append(_fact(f"lag p99 {format_duration(p99)} is {share}", p99))
    busy = _busy(timeline)
    if busy is not None:
        text = f"the busiest worker used {busy:.0%} of its core for a tenth of the time and more"
        facts.append(Evidence(text, busy, "share", "samples", f"metric = {GENERATOR_CPU}"))
    if not facts:
        return []
    return [
        Finding(
            NAME,
            "The load generator was late: part of what was measured is the generator itself"
            if invalid or len(facts) > 1 or busy is None
            else "The load generator is short of CPU: it may be late to see answers",
            0.9 if invalid else 0.6,
            tuple(facts),
            "Give the generator more: workers (--processes -1, or --master and --worker on other machines) or a "
            "machine that does nothing else.",
            (),
            slowed(1.0 if invalid else _VALID),
        )
    ]


def _measured(timeline: Timeline) -> float:
    """Seconds that a run typically takes from due to over; without any that is over, that its answer takes."""
    runs = timeline.runs
    for end in ("over_s", "answered_s"):
        taken = floats(runs, end) - floats(runs, "due_s")
        taken = taken[taken > 0]  # of two clocks, a short one may come out below none
        if taken.size:
            return float(np.median(taken))
    return np.inf


def _busy(timeline: Timeline) -> float | None:
    """The share of its core that a worker used, or more, for a tenth of the time; none below what is much."""
    samples = timeline.metric(GENERATOR_CPU)
    of_workers = [floats(each, "value") for _, each in samples.groupby("labels", sort=True) if len(each) >= _LEAST]
    busiest = max((float(np.quantile(values, 1 - _OFTEN)) for values in of_workers), default=0.0)
    return busiest if busiest > _CPU else None


def _fact(statement: str, value: float) -> Evidence:
    return Evidence(statement, value, "s", "submissions", "sent_at - due_at")
