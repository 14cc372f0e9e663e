"""The columns of `kubectl get` by type, as on a real server (1.36); values come from the rendered manifest."""

from collections.abc import Iterable
from typing import Any

from harness.model.units import parse_quantity
from harness.simulator.kube_api.resource import Column, Manifest, Since

NONE = "<none>"
_UNKNOWN = "<unknown>"


def text_at(manifest: Manifest, path: str, missing: str = NONE) -> str:
    """The value at a dotted path as text; `missing` if there is none."""
    value: Any = manifest
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    return missing if value is None or value == "" else str(value)


def _created(manifest: Manifest) -> Since:
    return Since(manifest["metadata"].get("creationTimestamp"))


NAME = Column("Name", "string", lambda manifest: manifest["metadata"]["name"], format="name", description="The name.")
AGE = Column("Age", "string", _created, description="Time since the object was created.")


def text_column(name: str, path: str, missing: str = "", *, priority: int = 0, description: str = "") -> Column:
    """A column for the value at a dotted path, as text."""
    return Column(name, "string", lambda it: text_at(it, path, missing), priority, description=description)


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
    return ",".join(sorted(roles)) or NONE


def _node_address(kind: str) -> Any:
    def read(manifest: Manifest) -> str:
        addresses = manifest.get("status", {}).get("addresses", [])
        return next((each["address"] for each in addresses if each["type"] == kind), NONE)

    return read


NODE_COLUMNS = (
    NAME,
    Column("Status", "string", _node_status, description="Whether the node is ready and schedulable."),
    Column("Roles", "string", _node_roles, description="The roles that the node's labels name."),
    AGE,
    text_column("Version", "status.nodeInfo.kubeletVersion", description="The kubelet's version."),
    Column("Internal-IP", "string", _node_address("InternalIP"), priority=1),
    Column("External-IP", "string", _node_address("ExternalIP"), priority=1),
    text_column("OS-Image", "status.nodeInfo.osImage", _UNKNOWN, priority=1),
    text_column("Kernel-Version", "status.nodeInfo.kernelVersion", _UNKNOWN, priority=1),
    text_column("Container-Runtime", "status.nodeInfo.containerRuntimeVersion", _UNKNOWN, priority=1),
)


def _object_of_event(manifest: Manifest) -> str:
    about = manifest.get("involvedObject") or manifest.get("regarding") or {}
    return f"{about.get('kind', '').lower()}/{about.get('name', '')}"


def _event_source(manifest: Manifest) -> str:
    source = manifest.get("source") or manifest.get("deprecatedSource") or {}
    component = source.get("component") or manifest.get("reportingComponent") or manifest.get("reportingController")
    return ", ".join(each for each in (component, source.get("host") or manifest.get("reportingInstance")) if each)


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
    text_column("Type", "type", description="Normal or Warning."),
    text_column("Reason", "reason", description="The reason, in one word."),
    Column("Object", "string", _object_of_event, description="The object of the event."),
    Column(
        "Subobject",
        "string",
        lambda it: text_at(it, "involvedObject.fieldPath", text_at(it, "regarding.fieldPath", "")),
        priority=1,
    ),
    Column("Source", "string", _event_source, priority=1),
    Column("Message", "string", lambda it: text_at(it, "message", text_at(it, "note", "")).strip()),
    Column("First Seen", "string", _event_seen(_FIRST_STAMPS, age=False), priority=1),
    Column("Count", "string", _event_count, priority=1),
    Column("Name", "string", lambda it: it["metadata"]["name"], priority=1, format="name"),
)

_ACCESS_MODES = {
    "ReadWriteOnce": "RWO", "ReadOnlyMany": "ROX", "ReadWriteMany": "RWX", "ReadWriteOncePod": "RWOP",
}  # fmt: skip


def _claim_status(manifest: Manifest) -> str:
    return "Terminating" if manifest["metadata"].get("deletionTimestamp") else text_at(manifest, "status.phase", "")


def _claim_capacity(manifest: Manifest) -> str:
    if not manifest.get("spec", {}).get("volumeName"):
        return ""
    return text_at(manifest, "status.capacity.storage", "0")


def _claim_modes(manifest: Manifest) -> str:
    if not manifest.get("spec", {}).get("volumeName"):
        return ""
    return ",".join(_ACCESS_MODES.get(each, each) for each in manifest.get("status", {}).get("accessModes", []))


CLAIM_COLUMNS = (
    NAME,
    Column("Status", "string", _claim_status, description="Pending, Bound or Lost."),
    text_column("Volume", "spec.volumeName", description="The bound volume."),
    Column("Capacity", "string", _claim_capacity),
    Column("Access Modes", "string", _claim_modes),
    text_column("StorageClass", "spec.storageClassName"),
    text_column("VolumeAttributesClass", "spec.volumeAttributesClassName", "<unset>"),
    AGE,
    text_column("VolumeMode", "spec.volumeMode", "<unset>", priority=1),
)


def _default_name(manifest: Manifest) -> str:
    annotations = manifest["metadata"].get("annotations", {})
    default = annotations.get("storageclass.kubernetes.io/is-default-class") == "true"
    return f"{manifest['metadata']['name']} (default)" if default else str(manifest["metadata"]["name"])


STORAGE_CLASS_COLUMNS = (
    Column("Name", "string", _default_name, format="name", description="The name, and whether it is the default."),
    text_column("Provisioner", "provisioner", description="The provisioner of its volumes."),
    text_column("ReclaimPolicy", "reclaimPolicy", "Delete"),
    text_column("VolumeBindingMode", "volumeBindingMode", "Immediate"),
    Column("AllowVolumeExpansion", "string", lambda it: bool(it.get("allowVolumeExpansion"))),
    AGE,
)

CONFIG_MAP_COLUMNS = (
    NAME,
    Column("Data", "string", lambda it: len(it.get("data") or ()) + len(it.get("binaryData") or ())),
    AGE,
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
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or NONE


_TEMPLATE_COLUMNS = (
    Column("Containers", "string", _containers("name"), priority=1),
    Column("Images", "string", _containers("image"), priority=1),
    Column("Selector", "string", _selector, priority=1),
)
DEPLOYMENT_COLUMNS = (
    NAME,
    Column("Ready", "string", _deployment_ready, description="Ready and desired pods."),
    Column("Up-to-date", "string", _replicas("updatedReplicas")),
    Column("Available", "string", _replicas("availableReplicas")),
    AGE,
    *_TEMPLATE_COLUMNS,
)

REPLICA_SET_COLUMNS = (
    NAME,
    Column("Desired", "integer", lambda it: it.get("spec", {}).get("replicas", 1), description="Desired pods."),
    Column("Current", "integer", _replicas("replicas"), description="Current pods."),
    Column("Ready", "integer", _replicas("readyReplicas"), description="Pods that are ready."),
    AGE,
    *_TEMPLATE_COLUMNS,
)


NAMESPACE_COLUMNS = (
    NAME,
    text_column("Status", "status.phase", description="Active or Terminating."),
    AGE,
)


def _quota(*, limits: bool) -> Any:
    """Used and allowed amounts: of limits, or of requests and counts."""

    def read(manifest: Manifest) -> str:
        status = manifest.get("status", {})
        hard, used = status.get("hard", {}), status.get("used", {})
        names = sorted(name for name in hard if name.startswith("limits") == limits)
        return ", ".join(f"{name}: {used.get(name, '0')}/{hard[name]}" for name in names)

    return read


QUOTA_COLUMNS = (
    NAME,
    Column("Request", "string", _quota(limits=False), description="Used and allowed requests."),
    Column("Limit", "string", _quota(limits=True), description="Used and allowed limits."),
    AGE,
)

PRIORITY_CLASS_COLUMNS = (
    NAME,
    Column("Value", "integer", lambda it: it["value"], description="The priority of pods of the class."),
    Column("Global-Default", "boolean", lambda it: bool(it.get("globalDefault")), description="If it is the default."),
    AGE,
    Column("PreemptionPolicy", "string", lambda it: it.get("preemptionPolicy", ""), description="Whether it preempts."),
)

LEASE_COLUMNS = (
    NAME,
    text_column("Holder", "spec.holderIdentity", description="The holder of the lease."),
    AGE,
)

MACHINES_COLUMNS = (  # as Cluster API's definition has them
    NAME,
    text_column("Cluster", "spec.clusterName", description="The cluster."),
    Column("Replicas", "integer", _replicas("replicas"), description="Current machines."),
    Column("Ready", "integer", _replicas("readyReplicas"), description="Nodes that are ready."),
    Column("Updated", "integer", _replicas("updatedReplicas"), description="Machines of the latest revision."),
    Column("Unavailable", "integer", _replicas("unavailableReplicas"), description="Machines that are not ready."),
    text_column("Phase", "status.phase", description="ScalingUp or Running."),
    Column("Age", "date", _created, description="Time since the object was created."),
)

WORKFLOW_COLUMNS = (
    NAME,
    text_column("Status", "status.phase", description="The workflow's phase."),
    Column("Age", "date", lambda it: Since(it.get("status", {}).get("startedAt")), description="Time since its start."),
    text_column("Message", "status.message", description="Why it is in this phase."),
)

DASK_CLUSTER_COLUMNS = (
    NAME,
    text_column("Workers", "spec.worker.replicas", description="The number of desired worker Pods"),
    text_column("Status", "status.phase"),
    AGE,
)
DASK_GROUP_COLUMNS = (NAME, text_column("Workers", "spec.worker.replicas"), AGE)
DASK_AUTOSCALER_COLUMNS = (
    NAME,
    text_column("Cluster", "spec.cluster", description="Cluster to autoscale"),
    text_column("Minimum", "spec.minimum"),
    text_column("Maximum", "spec.maximum"),
    AGE,
)

NODE_METRICS_COLUMNS = (
    NAME,
    text_column("cpu", "usage.cpu"),
    text_column("memory", "usage.memory"),
    text_column("window", "window"),
)


def _pod_usage(kind: str) -> Any:
    """The sum over the containers: cores in ``n``, bytes in ``Ki``."""

    def read(manifest: Manifest) -> str:
        total = sum(parse_quantity(each.get("usage", {}).get(kind, "0")) for each in manifest.get("containers", []))
        return f"{round(total * 1e9)}n" if kind == "cpu" else f"{round(total / 1024)}Ki"

    return read


POD_METRICS_COLUMNS = (
    NAME,
    Column("cpu", "string", _pod_usage("cpu")),
    Column("memory", "string", _pod_usage("memory")),
    text_column("window", "window"),
)
