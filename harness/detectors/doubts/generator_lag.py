"""The load generator was late or short of CPU: its measurements may describe itself."""

import numpy as np

from harness.analysis.lateness import judged_lateness
from harness.detectors.detector import Capability, Evidence, Finding, Timeline, floats, format_duration, slowed
from harness.model.phases import GENERATOR_CPU

NAME = "generator-lag"
NEEDS = (Capability.SUBMISSIONS,)
DOUBT = True

_MAX_CPU = 0.7  # of a core: an M/D/1 queue waits longer than it serves from 2/3 on
_MIN_OFTEN, _MIN_SAMPLES = 0.1, 5  # share and number of a worker's samples: a short peak fills one
_MIN_LAG_S = 0.005  # the limit of a valid test's median
_MAX_SHARE = 0.1  # of the measured duration
_SHARE_IF_VALID = 0.05  # of the runs' time, in a valid test: less than any bottleneck costs


def detect(timeline: Timeline) -> list[Finding]:
    """Arrivals left so late that the load is not the promised one, or the lag is a tenth of the measured durations.

    A measured duration is a run's, from due to its end; the API's response time only where no run's end is known.
    A lag of milliseconds is negligible against minutes, however fast the API responds.
    """
    late = judged_lateness(timeline)
    share_of_runs = min(1.0, late.p99_s / late.measured_s) if late.measured_s else 0.0
    facts = [_fact(reason, late.p99_s) for reason in late.reasons]
    if not facts and late.p99_s > _MIN_LAG_S and share_of_runs > _MAX_SHARE:
        share = f"{late.p99_s / late.measured_s:.0%} of the median run duration ({format_duration(late.measured_s)})"
        facts.append(_fact(f"lag p99 {format_duration(late.p99_s)} is {share}", late.p99_s))
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
            if late.reasons or len(facts) > 1 or busy is None
            else "The load generator is short of CPU: it may record responses late",
            0.9 if late.reasons else 0.6,
            tuple(facts),
            "Add load generator workers (--processes -1, or --master and --worker on other machines), or use a "
            "dedicated machine.",
            (),
            slowed(max(_SHARE_IF_VALID, share_of_runs) if late.reasons else _SHARE_IF_VALID),
        )
    ]


def _busy(timeline: Timeline) -> float | None:
    """The share of its core that the busiest worker exceeded for a tenth of the time; none when that is harmless."""
    samples = timeline.metric(GENERATOR_CPU)
    of_workers = [floats(own, "value") for _, own in samples.groupby("labels", sort=True) if len(own) >= _MIN_SAMPLES]
    busiest = max((float(np.quantile(values, 1 - _MIN_OFTEN)) for values in of_workers), default=0.0)
    return busiest if busiest > _MAX_CPU else None


def _fact(statement: str, value: float) -> Evidence:
    return Evidence(statement, value, "s", "submissions", "sent_at - due_at")
