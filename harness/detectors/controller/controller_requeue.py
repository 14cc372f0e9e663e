"""The workflow controller has time to spare, and looks at a changed workflow only when its next look is due."""

from harness.analysis.waits.controller_limit import Limit
from harness.detectors.controller.slow_controller import HELD, finding, requeue, slow_controller
from harness.detectors.detector import Capability, Finding, Timeline

NAME = "controller-requeue"
SEEN = ("real: kfp-none",)
NEEDS = (Capability.RUNS, Capability.PODS)
USES = {
    Capability.WORKFLOWS: "whether a quota or a lock held pods back",
    Capability.CONTROLLER: "whether the controller had time to spare",
}
TARGETS = ("kfp", "argo")
EXPLAINED_BY = HELD
OVERSTATED_EARLY = True

_FIX = (
    "Requeue workflows sooner after a change (DEFAULT_REQUEUE_TIME). By default the controller looks at a workflow "
    "10 s after its last look, and the next pod waits for the rest of that time. With less, it looks more often, "
    "which takes time of its workers and requests of its client."
)


def detect(timeline: Timeline) -> list[Finding]:
    """New workflows start at once, and each later step waits no longer than to the next look."""
    slow = slow_controller(timeline)
    if slow is None or slow.limit is not Limit.LOOKS:
        return []
    return [finding(NAME, slow, "is slow to start the next step", _FIX, requeue(timeline))]
