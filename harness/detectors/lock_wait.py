"""Workflows wait for a semaphore or a mutex."""

import re

from harness.analysis.timeline import Timeline
from harness.analysis.timeline.columns import containing
from harness.analysis.waits.failures import own_events
from harness.analysis.waits.waits import waits_so_far
from harness.detectors.capability import Capability
from harness.detectors.detector import slowed
from harness.model.findings import Evidence, Finding
from harness.model.inert import shell_word
from harness.model.phases import CONTROLLER

NAME = "lock-wait"
NEEDS = (Capability.RUNS, Capability.WORKFLOWS)
TARGETS = ("argo", "kfp")
NOT_INJECTED = "it is a property of the workflows, not of the platform"

# As Argo 4.0 words it: of a node, or of the workflow as a whole.
_WAITING = re.compile(
    r"Waiting for (?P<namespace>[^/\s]+)/(?P<kind>\w+)/(?P<name>\S+) lock\. Lock status: \d+/(?P<most>\d+)"
)
_MUTEX = "Mutex"


def detect(timeline: Timeline) -> list[Finding]:
    """What waiting nodes and workflows say, as the controller writes it."""
    own = own_events(timeline)
    waiting = own[containing(own["message"], _WAITING)]
    found = _WAITING.search(str(waiting["message"].iat[0])) if len(waiting) else None
    if found is None:
        return []
    runs = int(waiting["run"].nunique())
    is_mutex, name = found["kind"] == _MUTEX, found["name"]
    what = (
        f"the mutex {name}, which one may hold" if is_mutex else f"the semaphore {name}, which {found['most']} may hold"
    )
    share = waits_so_far(timeline).shares()[CONTROLLER]
    return [
        Finding(
            NAME,
            f"Workflows wait for {what}",
            0.95,
            (
                Evidence(
                    f"{runs:,} of the runs that were looked at said “{found[0][:200]}”", float(runs), "runs", "events",
                    "reason = PENDING",
                ),
                Evidence(f"{share:.1%} of all run time passed without a live pod", share, "share", "spans"),
            ),
            _fix(is_mutex=is_mutex),
            _commands(found),
            slowed(max(share, 0.01)),
        )
    ]  # fmt: skip


def _fix(*, is_mutex: bool) -> str:
    if is_mutex:
        return "Narrow the mutex to the step that needs it, or replace it by a semaphore that several may hold."
    return "Raise the semaphore's limit in its ConfigMap, if what it protects allows that."


def _commands(found: re.Match[str]) -> tuple[str, ...]:
    namespace = shell_word(found["namespace"])
    if found["kind"] == _MUTEX:
        return (f"kubectl get workflows -n {namespace} -o yaml | grep -A8 synchronization",)
    config_map = shell_word(found["name"].partition("/")[0])
    return (f"kubectl edit configmap {config_map} -n {namespace}",)
