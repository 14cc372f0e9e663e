"""The load generator itself was late or short of CPU: what it measured may be itself."""

import numpy as np

from harness.analysis.timeline import Timeline, floats
from harness.analysis.validity import LAG_P50_S, LAG_P99_S, lateness
from harness.detectors.detector import SUBMISSIONS, slowed
from harness.model.findings import Evidence, Finding
from harness.model.phases import GENERATOR_CPU
from harness.model.units import format_duration

NAME = "generator-lag"
NEEDS = (SUBMISSIONS,)

_CPU = 0.7
_SHARE_OF_P50 = 0.1


def detect(timeline: Timeline) -> list[Finding]:
    """Arrivals left late, or lag and CPU come near the point where they distort what is measured."""
    late = lateness(timeline)
    sent = np.isfinite(late)
    if not sent.any():
        return []
    p50, p99 = (float(v) for v in np.quantile(late[sent], (0.5, 0.99)))
    runs = timeline.runs
    service = (floats(runs, "answered_s") - floats(runs, "sent_s"))[np.isfinite(floats(runs, "answered_s"))]
    typical = float(np.median(service)) if service.size else np.inf
    busiest = float(floats(timeline.metric(GENERATOR_CPU), "value").max(initial=0.0))
    facts = []
    if p50 > LAG_P50_S or p99 > LAG_P99_S:
        facts.append(_fact(f"arrivals left {format_duration(p50)} late (p50), {format_duration(p99)} (p99)", p99))
    elif p99 > max(_SHARE_OF_P50 * typical, LAG_P50_S):
        facts.append(
            _fact(
                f"lag p99 {format_duration(p99)} is {p99 / typical:.0%} of a typical answer's time",
                p99,
            )
        )
    if busiest > _CPU:
        facts.append(
            Evidence(
                f"the busiest worker used {busiest:.0%} of its core",
                busiest,
                "share",
                "samples",
                f"metric = {GENERATOR_CPU}",
            )
        )
    if not facts:
        return []
    return [
        Finding(
            NAME,
            "The load generator was late: part of what was measured is the generator itself",
            0.9 if p99 > LAG_P99_S or p50 > LAG_P50_S else 0.6,
            tuple(facts),
            "Give the generator more: workers (--processes -1, or --master and --worker on other machines) or a "
            "machine that does nothing else.",
            (),
            slowed(1.0) if p99 > LAG_P99_S or p50 > LAG_P50_S else slowed(0.2),
        )
    ]


def _fact(statement: str, value: float) -> Evidence:
    return Evidence(statement, value, "s", "submissions", "sent_at - due_at")
