"""Too few runs for a conclusion: high quantiles and rates have no useful interval."""

from harness.analysis.latency import latencies
from harness.detectors.detector import FEW_RUNS, Capability, Evidence, Finding, Timeline, counted, slowed

NAME = "too-few-samples"
NEEDS = (Capability.RUNS,)
DOUBT = True


def detect(timeline: Timeline) -> list[Finding]:
    """Fewer than `FEW_RUNS` runs ended."""
    over = int(timeline.is_over.sum())
    if over >= FEW_RUNS:
        return []
    p95 = latencies(timeline).duration.at(0.95)
    bounded = "has no upper bound" if p95.high is None else "is uncertain"
    return [
        Finding(
            NAME,
            f"Too few runs ended for a conclusion: {over} of at least {FEW_RUNS}",
            0.8,
            (Evidence(f"{counted(over, 'run')} ended; the p95 duration {bounded}", float(over), "runs", "events"),),
            f"Run at least {FEW_RUNS} runs, or a few hundred for a p99.",
            (),
            slowed(0.1),
        )
    ]
