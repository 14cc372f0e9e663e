"""The columns of `kubectl get` for the types that operators watch; values come from the rendered manifest.

Other types show their name and age, and none shows more with ``-o wide``.
"""

from typing import Any

from harness.simulator.kube_api.resource import Column, Manifest, Since

NONE = "<none>"


def text_at(manifest: Manifest, path: str, missing: str = "") -> str:
    """The value at a dotted path as text; `missing` if there is none."""
    value: Any = manifest
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return missing if value is None or value == "" else str(value)


def _text(name: str, path: str, missing: str = "") -> Column:
    return Column(name, lambda it: text_at(it, path, missing))


def _age(name: str, path: str) -> Column:
    return Column(name, lambda it: Since(text_at(it, path) or it["metadata"].get("creationTimestamp")))


NAME = Column("Name", lambda manifest: manifest["metadata"]["name"])
AGE = _age("Age", "metadata.creationTimestamp")


def _node_status(manifest: Manifest) -> str:
    conditions = manifest.get("status", {}).get("conditions", [])
    ready = next((each["status"] for each in conditions if each["type"] == "Ready"), "Unknown")
    status = {"True": "Ready", "False": "NotReady"}.get(ready, "NotReady" if conditions else "Unknown")
    return f"{status},SchedulingDisabled" if manifest.get("spec", {}).get("unschedulable") else status


NODE_COLUMNS = (NAME, Column("Status", _node_status), AGE, _text("Version", "status.nodeInfo.kubeletVersion"))


def _object_of_event(manifest: Manifest) -> str:
    about = manifest.get("involvedObject") or manifest.get("regarding") or {}
    return f"{about.get('kind', '').lower()}/{about.get('name', '')}"


EVENT_COLUMNS = (
    Column(
        "Last Seen",
        lambda it: Since(
            it.get("lastTimestamp") or it.get("deprecatedLastTimestamp") or it["metadata"].get("creationTimestamp")
        ),
    ),
    _text("Type", "type"),
    _text("Reason", "reason"),
    Column("Object", _object_of_event),
    Column("Message", lambda it: text_at(it, "message", text_at(it, "note")).strip()),
)


def _claim_status(manifest: Manifest) -> str:
    return "Terminating" if manifest["metadata"].get("deletionTimestamp") else text_at(manifest, "status.phase")


CLAIM_COLUMNS = (
    NAME,
    Column("Status", _claim_status),
    _text("Volume", "spec.volumeName"),
    _text("Capacity", "status.capacity.storage"),
    _text("StorageClass", "spec.storageClassName"),
    AGE,
)


def _replicas(kind: str) -> Any:
    return lambda manifest: int(manifest.get("status", {}).get(kind) or 0)


def _deployment_ready(manifest: Manifest) -> str:
    return f"{_replicas('readyReplicas')(manifest)}/{manifest.get('spec', {}).get('replicas', 1)}"


DEPLOYMENT_COLUMNS = (
    NAME,
    Column("Ready", _deployment_ready),
    Column("Up-to-date", _replicas("updatedReplicas")),
    Column("Available", _replicas("availableReplicas")),
    AGE,
)


def _quota(manifest: Manifest) -> str:
    """Used and allowed amounts."""
    status = manifest.get("status", {})
    hard, used = status.get("hard", {}), status.get("used", {})
    return ", ".join(f"{name}: {used.get(name, '0')}/{hard[name]}" for name in sorted(hard))


QUOTA_COLUMNS = (NAME, Column("Request", _quota), AGE)
PRIORITY_CLASS_COLUMNS = (NAME, Column("Value", lambda it: it["value"]), AGE)
MACHINES_COLUMNS = (
    NAME,
    Column("Replicas", _replicas("replicas")),
    Column("Ready", _replicas("readyReplicas")),
    _text("Phase", "status.phase"),
    AGE,
)
WORKFLOW_COLUMNS = (
    NAME,
    _text("Status", "status.phase"),
    _age("Age", "status.startedAt"),
    _text("Message", "status.message"),
)
DASK_CLUSTER_COLUMNS = (NAME, _text("Workers", "spec.worker.replicas"), _text("Status", "status.phase"), AGE)


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


POD_COLUMNS = (
    NAME,
    Column("Ready", _pod_ready),
    Column("Status", _pod_status),
    Column("Restarts", _pod_restarts),
    AGE,
)
