"""The columns of `kubectl get pods`, which summarise the states of a pod and its containers."""

from typing import Any

from harness.simulator.kube_api.columns import AGE, NAME, NONE, text_column
from harness.simulator.kube_api.resource import Column, Manifest, Since


def _statuses(manifest: Manifest, kind: str = "containerStatuses") -> list[dict[str, Any]]:
    return manifest.get("status", {}).get(kind) or []


def _pod_ready(manifest: Manifest) -> str:
    ready = sum(1 for each in _statuses(manifest) if each.get("ready") and "running" in each.get("state", {}))
    return f"{ready}/{len(manifest.get('spec', {}).get('containers', []))}"


def _ended_as(state: dict[str, Any]) -> str:
    if state.get("reason"):
        return str(state["reason"])
    return f"Signal:{state['signal']}" if state.get("signal") else f"ExitCode:{state.get('exitCode', 0)}"


def _initializing(manifest: Manifest) -> str:
    """The pod's status while an init container has not finished; "" when all have."""
    count = len(manifest.get("spec", {}).get("initContainers", []))
    for index, each in enumerate(_statuses(manifest, "initContainerStatuses")):
        state = each.get("state", {})
        if "terminated" in state:
            if state["terminated"].get("exitCode", 0) == 0:
                continue
            return f"Init:{_ended_as(state['terminated'])}"
        waiting = state.get("waiting", {}).get("reason")
        return f"Init:{waiting}" if waiting not in (None, "", "PodInitializing") else f"Init:{index}/{count}"
    return ""


def _container_reason(manifest: Manifest, otherwise: str) -> str:
    """The reason of the first container with one; Running if another container still runs."""
    reason, runs = otherwise, False
    for each in reversed(_statuses(manifest)):
        state = each.get("state", {})
        if state.get("waiting", {}).get("reason"):
            reason = state["waiting"]["reason"]
        elif "terminated" in state:
            reason = _ended_as(state["terminated"])
        elif each.get("ready") and "running" in state:
            runs = True
    if reason == "Completed" and runs:
        conditions = manifest.get("status", {}).get("conditions", [])
        is_ready = any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)
        return "Running" if is_ready else "NotReady"
    return reason


def _pod_status(manifest: Manifest) -> str:
    status = manifest.get("status", {})
    own_reason = status.get("reason")
    conditions = status.get("conditions", [])
    reason = own_reason or status.get("phase", "")
    if any(each["type"] == "PodScheduled" and each.get("reason") == "SchedulingGated" for each in conditions):
        reason = "SchedulingGated"
    reason = _initializing(manifest) or _container_reason(manifest, reason)
    if manifest["metadata"].get("deletionTimestamp"):
        return "Unknown" if own_reason == "NodeLost" else "Terminating"
    return reason


def _pod_restarts(manifest: Manifest) -> object:
    """The number of restarts, and the time since the last."""
    statuses = _statuses(manifest)
    count = sum(each.get("restartCount", 0) for each in statuses)
    ends = (each.get("lastState", {}).get("terminated", {}).get("finishedAt") for each in statuses)
    last = max((each for each in ends if each), default=None)
    return Since(last, before=f"{count} (", after=" ago)") if count and last else str(count)


def _readiness_gates(manifest: Manifest) -> str:
    gates = manifest.get("spec", {}).get("readinessGates") or []
    if not gates:
        return NONE
    conditions = manifest.get("status", {}).get("conditions", [])
    true = {each["type"] for each in conditions if each["status"] == "True"}
    return f"{sum(each['conditionType'] in true for each in gates)}/{len(gates)}"


POD_COLUMNS = (
    NAME,
    Column("Ready", "string", _pod_ready, description="Ready and total containers."),
    Column("Status", "string", _pod_status, description="The aggregate state of the containers."),
    Column("Restarts", "string", _pod_restarts, description="Number of container restarts."),
    AGE,
    text_column("IP", "status.podIP", NONE, priority=1),
    text_column("Node", "spec.nodeName", NONE, priority=1),
    text_column("Nominated Node", "status.nominatedNodeName", NONE, priority=1),
    Column("Readiness Gates", "string", _readiness_gates, priority=1),
)


def pod_completion(manifest: Manifest) -> list[dict[str, str]]:
    """The row condition ``Completed`` of a pod that has ended."""
    phase = manifest.get("status", {}).get("phase")
    message = {
        "Succeeded": "The pod has completed successfully.",
        "Failed": "The pod failed.",
    }.get(phase)
    return [{"type": "Completed", "status": "True", "reason": phase, "message": message}] if message else []
