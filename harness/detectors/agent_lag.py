"""Runs end long before the API reports it: the persistence agent lags behind."""

import numpy as np

from harness.analysis.timeline import Floats, Timeline, floats
from harness.analysis.waits.waits import waits
from harness.detectors.capability import Capability
from harness.detectors.detector import quarters, slowed
from harness.model.findings import Evidence, Finding
from harness.model.units import format_duration

NAME = "agent-lag"
NEEDS = (Capability.RUNS,)
TARGETS = ("kfp",)
# The agent reports through the API server's token bucket.
EXPLAINED_BY = {"api-throttled": 0.2}
FAULTS = ("agent-lag",)

_LEAST_S = 4.0  # timestamps in whole seconds and the agent's polling explain less than that
_SHARE = 0.1


def detect(timeline: Timeline) -> list[Finding]:
    """The time from a workflow's end, by its controller's timestamp, to when the API learned of it.

    From the last pod to the workflow's end, the run waits for the controller instead.
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
            f"The API reports the end of a run {format_duration(typical)} late (p95 {format_duration(slow)})",
            0.85,
            _evidence(late, typical, slow),
            "Give the persistence agent more workers and a higher client rate (--clientQPS, --clientBurst), and delete "
            "finished workflows sooner: it checks every one that still exists.",
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
            f"delay from the workflow's end to the run's end in the API: p50 {format_duration(typical)}, "
            f"p95 {format_duration(slow)}",
            slow, "s", "events", "kind = Run",
        ),
        Evidence(
            f"mean delay {format_duration(first)} in the first quarter of the runs, "
            f"{format_duration(last)} in the last",
            last, "s", "events", "kind = Run",
        ),
    )  # fmt: skip
