"""How far the pod of a test is: a decision about its manifest, without I/O."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from harness.in_cluster.manifests import LOAD

# Waiting does not help, although Kubernetes keeps trying.
_STUCK = frozenset({
    "InvalidImageName", "ErrImageNeverPull", "ImagePullBackOff", "CreateContainerConfigError", "CreateContainerError",
    "RunContainerError",
})  # fmt: skip


class Step(Enum):
    """Of a load's container."""

    WAITING = auto()
    STUCK = auto()
    RUNNING = auto()
    ENDED = auto()


@dataclass(frozen=True, slots=True)
class PodState:
    """The step, why (one phrase, or ""), and the exit code of a load that has ended by itself."""

    step: Step
    said: str = ""
    exit_code: int | None = None


def state_of(pod: Mapping[str, Any] | None) -> PodState:
    """The state of a test by its pod; none is not made yet."""
    if pod is None:
        return PodState(Step.WAITING, "no pod yet")
    status = pod.get("status") or {}
    containers = {
        container["name"]: container.get("state") or {} for container in status.get("containerStatuses") or ()
    }
    load = containers.get(LOAD, {})
    if "terminated" in load:
        return _ended(load["terminated"])
    if status.get("phase") == "Failed":  # evicted, or its node is lost
        return PodState(Step.ENDED, _sentence(status.get("reason") or "the pod failed", status.get("message")))
    if "running" in load:
        return PodState(Step.RUNNING)
    if "waiting" in load:
        reason = str(load["waiting"].get("reason") or "")
        step = Step.STUCK if reason in _STUCK else Step.WAITING
        return PodState(step, _sentence(reason, load["waiting"].get("message")))
    return PodState(Step.WAITING, _unscheduled(status))


def _ended(terminated: Mapping[str, Any]) -> PodState:
    code, reason = int(terminated["exitCode"]), str(terminated.get("reason") or "")
    if reason in {"OOMKilled", "ContainerCannotRun", "StartError", "ContainerStatusUnknown"}:
        return PodState(Step.ENDED, _sentence(reason, terminated.get("message")))
    return PodState(Step.ENDED, exit_code=code)


def _unscheduled(status: Mapping[str, Any]) -> str:
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return _sentence(condition.get("reason", ""), condition.get("message"))
    return "the pod is not started yet"


def _sentence(reason: str, message: str | None) -> str:
    return f"{reason}: {message}" if reason and message else reason or message or ""
