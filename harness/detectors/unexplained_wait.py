"""The last resort: runs took longer and longer, and nothing that was observed says why."""

import numpy as np

from harness.analysis.timeline import Timeline
from harness.analysis.waits.waits import waits
from harness.detectors.capability import Capability
from harness.detectors.detector import FEW_RUNS, quarters, slowed
from harness.model.findings import Evidence, Finding
from harness.model.phases import RUN_PHASES, UNKNOWN
from harness.model.units import format_duration

NAME = "unexplained-wait"
NEEDS = (Capability.RUNS,)
# Whatever names a cause says more than this.
EXPLAINED_BY = dict.fromkeys(
    (
        "adapter-errors", "adapter-slow", "agent-lag", "api-errors", "api-throttled", "autoscaler-at-max",
        "autoscaler-failing", "autoscaler-slow", "caching", "controller-backlog", "controller-qps",
        "controller-requeue", "controller-workers", "cpu-starved", "db-connections", "db-full", "db-slow-listing",
        "driver-overhead", "etcd-full", "failures", "finished-workflows", "foreign-load", "generator-lag",
        "image-missing", "image-pull", "lb-imbalance", "lock-wait", "node-pressure", "nodes-exhausted",
        "noisy-neighbour", "oom", "parallelism-cap", "quota", "runtime-saturated", "slow-worker", "spot-evictions",
        "store-full", "store-slow", "store-unreachable-from-old-nodes", "stranded-capacity", "workflow-too-large",
        "workflows-postponed",
    ),
    0.0,
)  # fmt: skip
NOT_INJECTED = "it stands for what no other detector explains"

_GROWTH = 1.5  # of the runs' duration, from the first quarter of the runs to the last
_OF_GROWTH = 0.5  # by one phase
_LEAST_S = 5.0
_OF_PODS = (Capability.PODS, Capability.NODES, Capability.POD_EVENTS, Capability.NODE_CPU, Capability.STORE)
_OF_SERVICES = (Capability.EXECUTIONS, Capability.NODE_CPU)


def detect(timeline: Timeline) -> list[Finding]:
    """Later runs took much longer than the first ones, and one phase grew with them."""
    split = waits(timeline)
    if split.row.size < FEW_RUNS:
        return []
    order = np.argsort(split.row, kind="stable")
    early, late = (float(each.mean()) for each in quarters(split.total[order]))
    if not (late >= _GROWTH * early and late - early >= _LEAST_S):  # one of them may not be a number
        return []
    first, last = zip(*(quarters(split.of(phase)[order]) for phase in RUN_PHASES), strict=True)
    growth = np.array([float(b.mean() - a.mean()) for a, b in zip(first, last, strict=True)])
    most = int(np.argmax(growth))
    if growth[most] < _OF_GROWTH * (late - early):
        return []
    began, became = (float(each[most].mean()) for each in (first, last))
    phase, unseen = RUN_PHASES[most], _unseen(timeline)
    where = "a time that no observation divides" if phase == UNKNOWN else f"the phase “{phase}”"
    return [
        Finding(
            NAME,
            f"Later runs took longer, {format_duration(late)} instead of {format_duration(early)}, and no cause was "
            f"found: {where} grew",
            0.3,
            (
                Evidence(
                    f"{where} took {format_duration(began)} in the first quarter of the runs and "
                    f"{format_duration(became)} in the last (means)",
                    became, "s", "spans",
                ),
                *(Evidence(f"not observed, and it might tell: {reason}") for reason in unseen),
            ),
            "Observe what is missing here, and repeat the test; or send less, to see from which rate on runs wait.",
            (),
            slowed((late - early) / late),
        )
    ]  # fmt: skip


def _unseen(timeline: Timeline) -> list[str]:
    """Why some kinds of observations are missing that the platform could show."""
    kinds = _OF_SERVICES if timeline.answers_are_results else _OF_PODS
    return [each.reason(timeline) for each in kinds if not each.observed(timeline)]
