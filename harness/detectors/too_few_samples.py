"""Too few runs to say much: high quantiles and rates come with no useful interval."""

from harness.analysis.latency import latencies
from harness.analysis.timeline import Timeline
from harness.detectors.detector import RUNS, slowed
from harness.model.findings import Evidence, Finding
from harness.model.units import counted

NAME = "too-few-samples"
NEEDS = (RUNS,)

LEAST = 30


def detect(timeline: Timeline) -> list[Finding]:
    """Fewer than thirty runs that are over."""
    over = int(timeline.is_over.sum())
    if over >= LEAST:
        return []
    p95 = latencies(timeline).duration.at(0.95)
    bounded = "is not bounded from above by so few" if p95.high is None else "is uncertain"
    return [
        Finding(
            NAME,
            f"Too few runs ended to tell much about the platform: {over} of at least {LEAST}",
            0.8,
            (
                Evidence(
                    f"{counted(over, 'run')} ended; the p95 of the duration {bounded}", float(over), "runs", "events"
                ),
            ),
            f"Run at least {LEAST} runs, a few hundred for a p99.",
            (),
            slowed(0.1),
        )
    ]
