"""Runs end long before the API reports it: the persistence agent lags behind."""

import numpy as np

from harness.analysis.waits.waits import waits, workflow_end_s
from harness.detectors.detector import Capability, Evidence, Finding, Floats, Timeline, broke, floats, quarters, slowed
from harness.model.units import counted, format_duration

NAME = "agent-lag"
SEEN = ("folder: k6-burst60",)
NEEDS = (Capability.RUNS,)
TARGETS = ("kfp",)
# The agent reports through the API server's token bucket.
EXPLAINED_BY = {"api-throttled": 0.2}

_AGENT = "deployment/ml-pipeline-persistenceagent"
_MIN_OVERDUE_S = 15.0  # a real agent reported the ends of a burst of 60 by 13 s late (median)
_MIN_LATE_S = 4.0  # timestamps in whole seconds and the agent's polling explain less than that
_MIN_SHARE_OF_TIME = 0.1  # of the runs' time: a tenth is what an operator would act on


def detect(timeline: Timeline) -> list[Finding]:
    """The time from a workflow's end, by its controller's timestamp, to when the API learned of it.

    From the last pod to the workflow's end, the run waits for the controller instead.
    """
    unreported = _unreported(timeline)
    if unreported:
        return unreported
    split = waits(timeline)
    if not split.row.size:
        return []
    over, said = floats(timeline.runs, "over_s")[split.row], floats(timeline.runs, "said_s")[split.row]
    late = np.maximum(np.nan_to_num(said - over), 0.0)
    typical, slow = float(np.median(late)), float(np.quantile(late, 0.95))
    share = float(late.sum() / max(split.total.sum() + late.sum(), 1e-9))
    if slow < _MIN_LATE_S or share < _MIN_SHARE_OF_TIME:
        return []
    place = timeline.namespace
    return [
        Finding(
            NAME,
            f"The API reports the end of a run {format_duration(typical)} late (p95 {format_duration(slow)})",
            0.85,
            _evidence(late, typical, slow),
            "Give the persistence agent more workers and a higher client rate (--clientQPS, --clientBurst), and delete "
            "finished workflows sooner: it checks every one that still exists.",
            (
                f"kubectl set env {_AGENT} -n {place} NUM_WORKERS=10 TTL_SECONDS_AFTER_WORKFLOW_FINISH=600",
                f"kubectl rollout status {_AGENT} -n {place}",
            ),
            slowed(share),
        )
    ]


def _unreported(timeline: Timeline) -> list[Finding]:
    """Runs whose workflow ended, and whose end the API did not report while the test watched."""
    ended = workflow_end_s(timeline)[timeline.is_open]
    overdue = timeline.end_s - ended[timeline.end_s - ended >= _MIN_OVERDUE_S]
    if not overdue.size:
        return []
    share, longest = overdue.size / len(timeline.runs), format_duration(float(overdue.max()))
    count, place = counted(overdue.size, "run"), timeline.namespace
    return [
        Finding(
            NAME,
            f"Workflows ended, and the API never reported it: {count} still open after up to {longest}",
            0.95,
            (Evidence(f"{count} had an ended workflow and no end in the API", float(overdue.size), "runs", "events",
                      "kind = Workflow"),),
            "Check that the persistence agent runs, may reach the API server, and is not far behind: nothing else "
            "reports the ends of workflows to KFP.",
            (
                f"kubectl get pods -n {place} -l app=ml-pipeline-persistenceagent",
                f"kubectl logs -n {place} {_AGENT} --tail=50",
            ),
            broke(share),
        )
    ]  # fmt: skip


def _evidence(late: Floats, typical: float, slow: float) -> tuple[Evidence, ...]:
    first, last = (float(quarter.mean()) for quarter in quarters(late))
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
