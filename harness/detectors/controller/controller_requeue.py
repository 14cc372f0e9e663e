"""The workflow controller has time to spare, and looks at a changed workflow only when its next look is due."""

from harness.analysis.waits.controller_limit import Limit
from harness.detectors.controller.slow_controller import HELD, requeue, slow_controller, spent
from harness.detectors.detector import Capability, Finding, Timeline, slowed

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
NOT_INJECTED = "it is how the controller works by default: the profile kfp-default-install shows it"

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
    return [
        Finding(
            NAME,
            f"The workflow controller is slow to start the next step: {spent(slow)}",
            slow.confidence,
            slow.evidence,
            _FIX,
            requeue(timeline),
            slowed(slow.share),
        )
    ]
