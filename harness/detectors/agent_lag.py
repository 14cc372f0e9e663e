"""Runs are done long before the platform says so: its persistence agent lags behind."""

import numpy as np

from harness.analysis.timeline import Floats, Timeline, floats
from harness.analysis.waits.waits import waits
from harness.detectors import api_throttled
from harness.detectors.detector import RUNS, quarters, slowed
from harness.model.findings import Evidence, Finding
from harness.model.units import format_duration

NAME = "agent-lag"
NEEDS = (RUNS,)
TARGETS = ("kfp",)

_LEAST_S = 4.0  # whole-second stamps and the agent's own round explain less than that
_SHARE = 0.1


def detect(timeline: Timeline) -> list[Finding]:
    """From a workflow's end, as its controller stamped it, to when the API says that it learned of it.

    From the last pod to the workflow's end it is the controller that is waited for. Reports of ends pass the API
    server's own token bucket: where that is what holds them up, the agent is the lesser suspect.
    """
    split = waits(timeline)
    if not split.row.size:
        return []
    over, said = floats(timeline.runs, "over_s")[split.row], floats(timeline.runs, "said_s")[split.row]
    late = np.maximum(np.nan_to_num(said - over), 0.0)
    typical, slow = float(np.median(late)), float(np.quantile(late, 0.95))
    share = float(late.sum() / max(split.total.sum() + late.sum(), 1e-9))
    if slow < _LEAST_S or share < _SHARE:
        return []
    agent = "deployment/ml-pipeline-persistenceagent"
    return [
        Finding(
            NAME,
            f"The platform says {format_duration(typical)} late that a run is over (p95 {format_duration(slow)})",
            0.4 if api_throttled.detect(timeline) else 0.85,
            _evidence(late, typical, slow),
            "Give the persistence agent more workers and a higher client rate (--clientQPS, --clientBurst), and let "
            "finished workflows go sooner: it looks at every one that is still there.",
            (
                f"kubectl set env {agent} -n {timeline.namespace} NUM_WORKERS=10 TTL_SECONDS_AFTER_WORKFLOW_FINISH=600",
                f"kubectl rollout status {agent} -n {timeline.namespace}",
            ),
            slowed(share),
        )
    ]


def _evidence(late: Floats, typical: float, slow: float) -> tuple[Evidence, ...]:
    first, last = (float(each.mean()) for each in quarters(late))
    return (
        Evidence(
            f"from a workflow's end to its run's end in the API: p50 {format_duration(typical)}, p95 "
            f"{format_duration(slow)}",
            slow, "s", "events", "kind = Run",
        ),
        Evidence(
            f"{format_duration(first)} in the first quarter of the runs, {format_duration(last)} in the last",
            last, "s", "events", "kind = Run",
        ),
    )  # fmt: skip
