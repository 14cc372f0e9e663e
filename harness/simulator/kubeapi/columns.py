"""What `kubectl get` prints of each type: the columns of a real server (1.32), read off a rendered manifest."""

from collections.abc import Iterable
from typing import Any

from harness.simulator.kubeapi.store import Column, Manifest, Since

_NONE = "<none>"
_UNKNOWN = "<unknown>"


def _text(manifest: Manifest, path: str, missing: str = _NONE) -> str:
    """The value at a dotted path as text; `missing` where there is none."""
    value: Any = manifest
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return missing if value is None or value == "" else str(value)


def _created(manifest: Manifest) -> Since:
    return Since(manifest["metadata"].get("creationTimestamp"))


_NAME = Column("Name", "string", lambda manifest: manifest["metadata"]["name"], format="name", description="The name.")
_AGE = Column("Age", "string", _created, description="Time since the object was created.")


def _node_status(manifest: Manifest) -> str:
    conditions = manifest.get("status", {}).get("conditions", [])
    ready = next((each["status"] for each in conditions if each["type"] == "Ready"), "Unknown")
    status = {"True": "Ready", "False": "NotReady"}.get(ready, "NotReady" if conditions else "Unknown")
    return f"{status},SchedulingDisabled" if manifest.get("spec", {}).get("unschedulable") else status


def _node_roles(manifest: Manifest) -> str:
    labels = manifest["metadata"].get("labels", {})
    prefix = "node-role.kubernetes.io/"
    roles = {key.removeprefix(prefix) for key in labels if key.startswith(prefix) and key != prefix}
    roles |= {value for key, value in labels.items() if key == "kubernetes.io/role" and value}
    return ",".join(sorted(roles)) or _NONE


def _node_address(kind: str) -> Any:
    def read(manifest: Manifest) -> str:
        addresses = manifest.get("status", {}).get("addresses", [])
        return next((each["address"] for each in addresses if each["type"] == kind), _NONE)

    return read


NODE_COLUMNS = (
    _NAME,
    Column("Status", "string", _node_status, description="Whether the node is ready, and takes pods."),
    Column("Roles", "string", _node_roles, description="The roles that the node's labels name."),
    _AGE,
    Column("Version", "string", lambda it: _text(it, "status.nodeInfo.kubeletVersion", ""), description="Kubelet."),
    Column("Internal-IP", "string", _node_address("InternalIP"), priority=1),
    Column("External-IP", "string", _node_address("ExternalIP"), priority=1),
    Column("OS-Image", "string", lambda it: _text(it, "status.nodeInfo.osImage", _UNKNOWN), priority=1),
    Column("Kernel-Version", "string", lambda it: _text(it, "status.nodeInfo.kernelVersion", _UNKNOWN), priority=1),
    Column(
        "Container-Runtime",
        "string",
        lambda it: _text(it, "status.nodeInfo.containerRuntimeVersion", _UNKNOWN),
        priority=1,
    ),
)


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
    """What an unfinished init container makes of the pod's status; "" when all are done."""
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
    """The reason of the first container that has one, and Running beside one that is over."""
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
    """The count, and when the last restart was."""
    statuses = _statuses(manifest)
    count = sum(each.get("restartCount", 0) for each in statuses)
    ends = (each.get("lastState", {}).get("terminated", {}).get("finishedAt") for each in statuses)
    last = max((each for each in ends if each), default=None)
    return Since(last, before=f"{count} (", after=" ago)") if count and last else str(count)


def _readiness_gates(manifest: Manifest) -> str:
    gates = manifest.get("spec", {}).get("readinessGates") or []
    if not gates:
        return _NONE
    conditions = manifest.get("status", {}).get("conditions", [])
    true = {each["type"] for each in conditions if each["status"] == "True"}
    return f"{sum(each['conditionType'] in true for each in gates)}/{len(gates)}"


POD_COLUMNS = (
    _NAME,
    Column("Ready", "string", _pod_ready, description="Ready containers of all containers."),
    Column("Status", "string", _pod_status, description="What the containers' states amount to."),
    Column("Restarts", "string", _pod_restarts, description="How often containers were restarted."),
    _AGE,
    Column("IP", "string", lambda it: _text(it, "status.podIP"), priority=1),
    Column("Node", "string", lambda it: _text(it, "spec.nodeName"), priority=1),
    Column("Nominated Node", "string", lambda it: _text(it, "status.nominatedNodeName"), priority=1),
    Column("Readiness Gates", "string", _readiness_gates, priority=1),
)


def pod_completion(manifest: Manifest) -> list[dict[str, str]]:
    """What a table says of a pod that has ended: the row's condition ``Completed``."""
    phase = manifest.get("status", {}).get("phase")
    message = {
        "Succeeded": "The pod has completed successfully.",
        "Failed": "The pod failed.",
    }.get(phase)
    return [{"type": "Completed", "status": "True", "reason": phase, "message": message}] if message else []


def _object_of_event(manifest: Manifest) -> str:
    about = manifest.get("involvedObject") or manifest.get("regarding") or {}
    return f"{about.get('kind', '').lower()}/{about.get('name', '')}"


def _event_source(manifest: Manifest) -> str:
    source = manifest.get("source") or manifest.get("deprecatedSource") or {}
    component = source.get("component") or manifest.get("reportingComponent") or manifest.get("reportingController")
    return ", ".join(each for each in (component, source.get("host")) if each)


def _event_seen(stamps: Iterable[str], age: bool) -> Any:
    def read(manifest: Manifest) -> Since:
        found = (manifest.get("series") or {}).get("lastObservedTime") if age else None
        found = found or next((manifest[each] for each in stamps if manifest.get(each)), None)
        return Since(found or manifest["metadata"].get("creationTimestamp"))

    return read


def _event_count(manifest: Manifest) -> int:
    series = (manifest.get("series") or {}).get("count")
    return int(series or manifest.get("count") or manifest.get("deprecatedCount") or 1)


_LAST_STAMPS = ("lastTimestamp", "deprecatedLastTimestamp", "eventTime")
_FIRST_STAMPS = ("firstTimestamp", "deprecatedFirstTimestamp", "eventTime")

EVENT_COLUMNS = (
    Column("Last Seen", "string", _event_seen(_LAST_STAMPS, age=True), description="Time since it last happened."),
    Column("Type", "string", lambda it: _text(it, "type", ""), description="Normal or Warning."),
    Column("Reason", "string", lambda it: _text(it, "reason", ""), description="One word."),
    Column("Object", "string", _object_of_event, description="What it is about."),
    Column(
        "Subobject",
        "string",
        lambda it: _text(it, "involvedObject.fieldPath", _text(it, "regarding.fieldPath", "")),
        priority=1,
    ),
    Column("Source", "string", _event_source, priority=1),
    Column("Message", "string", lambda it: _text(it, "message", _text(it, "note", "")).strip()),
    Column("First Seen", "string", _event_seen(_FIRST_STAMPS, age=False), priority=1),
    Column("Count", "string", _event_count, priority=1),
    Column("Name", "string", lambda it: it["metadata"]["name"], priority=1, format="name"),
)

_ACCESS_MODES = {
    "ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP",
}  # fmt: skip


def _claim_status(manifest: Manifest) -> str:
    return "Terminating" if manifest["metadata"].get("deletionTimestamp") else _text(manifest, "status.phase", "")


def _claim_capacity(manifest: Manifest) -> str:
    if not manifest.get("spec", {}).get("volumeName"):
        return ""
    return _text(manifest, "status.capacity.storage", "0")


def _claim_modes(manifest: Manifest) -> str:
    if not manifest.get("spec", {}).get("volumeName"):
        return ""
    return ",".join(_ACCESS_MODES.get(each, each) for each in manifest.get("status", {}).get("accessModes", []))


CLAIM_COLUMNS = (
    _NAME,
    Column("Status", "string", _claim_status, description="Pending, Bound or Lost."),
    Column("Volume", "string", lambda it: _text(it, "spec.volumeName", ""), description="What it is bound to."),
    Column("Capacity", "string", _claim_capacity),
    Column("Access Modes", "string", _claim_modes),
    Column("StorageClass", "string", lambda it: _text(it, "spec.storageClassName", "")),
    Column("VolumeAttributesClass", "string", lambda it: _text(it, "spec.volumeAttributesClassName", "<unset>")),
    _AGE,
    Column("VolumeMode", "string", lambda it: _text(it, "spec.volumeMode", "<unset>"), priority=1),
)


def _replicas(kind: str) -> Any:
    return lambda manifest: int(manifest.get("status", {}).get(kind) or 0)


def _deployment_ready(manifest: Manifest) -> str:
    wanted = manifest.get("spec", {}).get("replicas", 1)
    return f"{manifest.get('status', {}).get('readyReplicas') or 0}/{wanted}"


def _containers(field: str) -> Any:
    def read(manifest: Manifest) -> str:
        template = manifest.get("spec", {}).get("template", {}).get("spec", {})
        return ",".join(each.get(field, "") for each in template.get("containers", []))

    return read


def _selector(manifest: Manifest) -> str:
    labels = manifest.get("spec", {}).get("selector", {}).get("matchLabels", {})
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or _NONE


DEPLOYMENT_COLUMNS = (
    _NAME,
    Column("Ready", "string", _deployment_ready, description="Ready pods of wanted pods."),
    Column("Up-to-date", "string", _replicas("updatedReplicas")),
    Column("Available", "string", _replicas("availableReplicas")),
    _AGE,
    Column("Containers", "string", _containers("name"), priority=1),
    Column("Images", "string", _containers("image"), priority=1),
    Column("Selector", "string", _selector, priority=1),
)

NAMESPACE_COLUMNS = (
    _NAME,
    Column("Status", "string", lambda it: _text(it, "status.phase", ""), description="Active or Terminating."),
    _AGE,
)

LEASE_COLUMNS = (
    _NAME,
    Column("Holder", "string", lambda it: _text(it, "spec.holderIdentity", ""), description="Who has it."),
    _AGE,
)

WORKFLOW_COLUMNS = (
    _NAME,
    Column("Status", "string", lambda it: _text(it, "status.phase", ""), description="The workflow's phase."),
    Column("Age", "date", lambda it: Since(it.get("status", {}).get("startedAt")), description="Time since its start."),
    Column("Message", "string", lambda it: _text(it, "status.message", ""), description="Why it is in this phase."),
)

NODE_METRICS_COLUMNS = (
    _NAME,
    Column("cpu", "string", lambda it: _text(it, "usage.cpu", "")),
    Column("memory", "string", lambda it: _text(it, "usage.memory", "")),
    Column("window", "string", lambda it: _text(it, "window", "")),
)


def _pod_usage(kind: str) -> Any:
    """The sum over the containers, in the unit of the largest part that they share."""
    unit = 1e6 if kind == "cpu" else 1024.0

    def read(manifest: Manifest) -> str:
        from harness.model.units import parse_quantity

        total = sum(parse_quantity(each.get("usage", {}).get(kind, "0")) for each in manifest.get("containers", []))
        return f"{round(total * 1e9)}n" if unit == 1e6 else f"{round(total / unit)}Ki"

    return read


POD_METRICS_COLUMNS = (
    _NAME,
    Column("cpu", "string", _pod_usage("cpu")),
    Column("memory", "string", _pod_usage("memory")),
    Column("window", "string", lambda it: _text(it, "window", "")),
)
