"""The load generator was late or short of CPU: its measurements may describe itself."""

import numpy as np

from harness.analysis.timeline import Timeline, floats
from harness.analysis.validity import LAG_MAX_S, LAG_P50_S, LAG_P99_S, lateness
from harness.detectors.capability import Capability
from harness.detectors.detector import slowed
from harness.model.findings import Evidence, Finding
from harness.model.phases import GENERATOR_CPU
from harness.model.units import format_duration

NAME = "generator-lag"
NEEDS = (Capability.SUBMISSIONS,)
DOUBT = True
NOT_INJECTED = "it is a defect of the load generator, not of the platform"

_CPU = 0.7
_OFTEN, _LEAST = 0.1, 5  # share and number of a worker's samples: a short peak fills one
_SHARE = 0.1  # of the measured duration
_VALID = 0.05  # of the runs' time, in a valid test: less than any bottleneck costs


def detect(timeline: Timeline) -> list[Finding]:
    """Arrivals left later than a valid test allows, or the lag is a notable share of the measured durations.

    A measured duration is a run's, from due to its end; the API's response time only where no run's end can be told.
    A lag of milliseconds is negligible beside minutes, however fast the API responds. Nor does a lag longer than the
    gaps between arrivals reshape the load: runs that last much longer than the lag overlap anyway.
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
        facts.append(_fact("arrivals left late: p50 {}, p99 {}, max {}".format(*lags), p99))
    elif p99 > LAG_P50_S and p99 > _SHARE * measured:
        share = f"{p99 / measured:.0%} of the median run duration ({format_duration(measured)})"
        facts.append(_fact(f"lag p99 {format_duration(p99)} is {share}", p99))
    busy = _busy(timeline)
    if busy is not None:
        text = f"the busiest worker used at least {busy:.0%} of its core for a tenth of the time"
        facts.append(Evidence(text, busy, "share", "samples", f"metric = {GENERATOR_CPU}"))
    if not facts:
        return []
    return [
        Finding(
            NAME,
            "The load generator was late: the measurements include its own delay"
            if invalid or len(facts) > 1 or busy is None
            else "The load generator is short of CPU: it may record responses late",
            0.9 if invalid else 0.6,
            tuple(facts),
            "Add load generator workers (--processes -1, or --master and --worker on other machines), or use a "
            "dedicated machine.",
            (),
            slowed(1.0 if invalid else _VALID),
        )
    ]


def _measured(timeline: Timeline) -> float:
    """The median run duration in seconds, from due to its end; infinite while there are runs, but no end of one.

    It is the median response time where every end rounds to before its arrival.
    """
    runs = timeline.runs
    if timeline.is_open.any() and not timeline.is_over.any():
        return np.inf
    for end in ("over_s", "answered_s"):
        taken = floats(runs, end) - floats(runs, "due_s")
        taken = taken[taken > 0]  # with timestamps of two clocks, a short one may come out negative
        if taken.size:
            return float(np.median(taken))
    return np.inf


def _busy(timeline: Timeline) -> float | None:
    """The share of its core that the busiest worker exceeded for a tenth of the time; none when that is harmless."""
    samples = timeline.metric(GENERATOR_CPU)
    of_workers = [floats(each, "value") for _, each in samples.groupby("labels", sort=True) if len(each) >= _LEAST]
    busiest = max((float(np.quantile(values, 1 - _OFTEN)) for values in of_workers), default=0.0)
    return busiest if busiest > _CPU else None


def _fact(statement: str, value: float) -> Evidence:
    return Evidence(statement, value, "s", "submissions", "sent_at - due_at")
