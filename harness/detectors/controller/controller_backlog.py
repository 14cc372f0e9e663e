"""The workflow controller is slow, and what was observed does not show which of its settings limits it."""

from harness.analysis.waits.controller_limit import Limit
from harness.analysis.waits.workflow_limits import as_good
from harness.detectors.controller.slow_controller import HELD, finding, requeue, slow_controller, tune
from harness.detectors.detector import Capability, Finding, Timeline
from harness.model.phases import BURST, QPS, WORKFLOW_WORKERS

NAME = "controller-backlog"
NEEDS = (Capability.RUNS, Capability.PODS)
USES = {
    Capability.WORKFLOWS: "whether a quota or a lock held pods back",
    Capability.CONTROLLER: "which of its settings limits it",
}
TARGETS = ("kfp", "argo")
EXPLAINED_BY = HELD  # a pod that is held back looks like a slow controller
OVERSTATED_EARLY = True  # more workflows may show which of its settings it is

_ARGUMENTS = {QPS: 100, BURST: 150, WORKFLOW_WORKERS: 64}
_REST = (
    "Give the workflow controller more CPU, and shorten the time to live of finished workflows, which it also checks. "
    "Its own metrics show what it lacks (--metrics argo=…)."
)
_REQUEUE = "Requeue workflows sooner after a change (DEFAULT_REQUEUE_TIME). "


def detect(timeline: Timeline) -> list[Finding]:
    """The time without a pod is long for the number of pods, or it grows."""
    slow = slow_controller(timeline)
    if slow is None or slow.limit is not Limit.UNKNOWN:
        return []
    problem = "can't keep up" if slow.grows else "is slow to start the next step"
    commands = (*(() if slow.grows else requeue(timeline)), *tune(timeline, _ARGUMENTS))
    return [finding(NAME, slow, problem, _fix(timeline, grows=slow.grows), commands)]


def _fix(timeline: Timeline, *, grows: bool) -> str:
    """What may help, without what it has already."""
    sooner = "" if grows or not requeue(timeline) else _REQUEUE
    more = ", ".join(name for name, value in _ARGUMENTS.items() if not as_good(timeline, name, value))
    return sooner + (f"Raise {more}. " if more else "") + _REST
