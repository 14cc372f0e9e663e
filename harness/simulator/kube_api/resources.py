"""The resource types of a real cluster, ready but for how the model's snapshots are shown.

``pods(render=…, labels=…, fields=…)`` is a `Resource`. For types of which there are few, `shown` reads labels and
fields off the rendered manifest: ``namespaces(**shown(render, "status.phase"))``.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypedDict

from harness.simulator.kube_api import columns, service_columns
from harness.simulator.kube_api.pod_columns import POD_COLUMNS, pod_completion
from harness.simulator.kube_api.resource import ALL_VERBS, Manifest, Resource, Snapshot

_NAMED = ("metadata.name", "metadata.namespace")
_ONE_BY_ONE = tuple(each for each in ALL_VERBS if each != "deletecollection")
_EVENT_FIELDS = (
    *_NAMED, "involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
    "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason",
    "reportingComponent", "source", "type",
)  # fmt: skip

nodes = partial(
    Resource, group="", version="v1", plural="nodes", kind="Node", namespaced=False, short_names=("no",),
    singular="node", columns=columns.NODE_COLUMNS, selectable=("metadata.name", "spec.unschedulable"),
    subresources=("status",),
)  # fmt: skip
pods = partial(
    Resource, group="", version="v1", plural="pods", kind="Pod", namespaced=True, short_names=("po",), singular="pod",
    columns=POD_COLUMNS, row_conditions=pod_completion, categories=("all",), returns_deleted=True,
    subresources=("eviction", "status"),
    selectable=(
        *_NAMED, "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
        "spec.hostNetwork", "status.phase", "status.podIP", "status.nominatedNodeName",
    ),
)  # fmt: skip
events = partial(
    Resource, group="", version="v1", plural="events", kind="Event", namespaced=True, short_names=("ev",),
    singular="event", columns=columns.EVENT_COLUMNS, selectable=_EVENT_FIELDS,
)  # fmt: skip
namespaces = partial(
    Resource, group="", version="v1", plural="namespaces", kind="Namespace", namespaced=False, short_names=("ns",),
    singular="namespace", columns=columns.NAMESPACE_COLUMNS, selectable=("metadata.name", "status.phase"),
    subresources=("status",), verbs=_ONE_BY_ONE,
)  # fmt: skip
persistent_volume_claims = partial(
    Resource, group="", version="v1", plural="persistentvolumeclaims", kind="PersistentVolumeClaim", namespaced=True,
    short_names=("pvc",), singular="persistentvolumeclaim", columns=columns.CLAIM_COLUMNS, returns_deleted=True,
    subresources=("status",),
)  # fmt: skip
config_maps = partial(
    Resource, group="", version="v1", plural="configmaps", kind="ConfigMap", namespaced=True, short_names=("cm",),
    singular="configmap", columns=columns.CONFIG_MAP_COLUMNS,
)  # fmt: skip
storage_classes = partial(
    Resource, group="storage.k8s.io", version="v1", plural="storageclasses", kind="StorageClass", namespaced=False,
    short_names=("sc",), singular="storageclass", columns=columns.STORAGE_CLASS_COLUMNS, returns_deleted=True,
    selectable=("metadata.name",),
)  # fmt: skip
endpoint_slices = partial(
    Resource, group="discovery.k8s.io", version="v1", plural="endpointslices", kind="EndpointSlice", namespaced=True,
    singular="endpointslice", columns=service_columns.ENDPOINT_SLICE_COLUMNS,
)  # fmt: skip
deployments = partial(
    Resource, group="apps", version="v1", plural="deployments", kind="Deployment", namespaced=True,
    short_names=("deploy",), singular="deployment", columns=columns.DEPLOYMENT_COLUMNS, categories=("all",),
    subresources=("scale", "status"),
)  # fmt: skip
replica_sets = partial(
    Resource, group="apps", version="v1", plural="replicasets", kind="ReplicaSet", namespaced=True, short_names=("rs",),
    singular="replicaset", columns=columns.REPLICA_SET_COLUMNS, categories=("all",), subresources=("status",),
)  # fmt: skip
services = partial(
    Resource, group="", version="v1", plural="services", kind="Service", namespaced=True, short_names=("svc",),
    singular="service", columns=service_columns.SERVICE_COLUMNS, categories=("all",), returns_deleted=True,
    subresources=("status",), selectable=(*_NAMED, "spec.clusterIP", "spec.type"), verbs=_ONE_BY_ONE,
)  # fmt: skip
resource_quotas = partial(
    Resource, group="", version="v1", plural="resourcequotas", kind="ResourceQuota", namespaced=True,
    short_names=("quota",), singular="resourcequota", columns=columns.QUOTA_COLUMNS, returns_deleted=True,
    subresources=("status",),
)  # fmt: skip
priority_classes = partial(
    Resource, group="scheduling.k8s.io", version="v1", plural="priorityclasses", kind="PriorityClass", namespaced=False,
    short_names=("pc",), singular="priorityclass", columns=columns.PRIORITY_CLASS_COLUMNS,
    selectable=("metadata.name",),
)  # fmt: skip
leases = partial(  # of nodes, in the namespace kube-node-lease: `kubectl describe node` shows when each was renewed
    Resource, group="coordination.k8s.io", version="v1", plural="leases", kind="Lease", namespaced=True,
    singular="lease", columns=columns.LEASE_COLUMNS,
)  # fmt: skip
workflows = partial(
    Resource, group="argoproj.io", version="v1alpha1", plural="workflows", kind="Workflow", namespaced=True,
    short_names=("wf",), singular="workflow", columns=columns.WORKFLOW_COLUMNS, custom=True,
)  # fmt: skip
machine_deployments = partial(  # node pools, as Cluster API manages them
    Resource, group="cluster.x-k8s.io", version="v1beta1", plural="machinedeployments", kind="MachineDeployment",
    namespaced=True, short_names=("md",), singular="machinedeployment", columns=columns.MACHINES_COLUMNS, custom=True,
    subresources=("scale", "status"),
)  # fmt: skip
node_metrics = partial(
    Resource, group="metrics.k8s.io", version="v1beta1", plural="nodes", kind="NodeMetrics", namespaced=False,
    columns=columns.NODE_METRICS_COLUMNS, selectable=("metadata.name",),
)  # fmt: skip
pod_metrics = partial(
    Resource, group="metrics.k8s.io", version="v1beta1", plural="pods", kind="PodMetrics", namespaced=True,
    columns=columns.POD_METRICS_COLUMNS,
)  # fmt: skip

_EVENTS_V1_FIELDS = {
    **{each: each for each in (*_NAMED, "reason", "type")},
    **{each.replace("involvedObject", "regarding"): each for each in _EVENT_FIELDS if each.startswith("involved")},
    "reportingController": "reportingComponent",
}


def events_v1(core: Resource) -> Resource:
    """``events.k8s.io/v1`` over the same objects as the core's `events`."""

    def render(snapshot: Snapshot) -> Manifest:
        return event_v1(core.render(snapshot))

    def fields(snapshot: Snapshot) -> Mapping[str, str]:
        known = core.fields(snapshot)
        return {ours: known[theirs] for ours, theirs in _EVENTS_V1_FIELDS.items() if theirs in known}

    return Resource(
        group="events.k8s.io", version="v1", plural="events", kind="Event", namespaced=True, short_names=("ev",),
        singular="event", columns=columns.EVENT_COLUMNS, selectable=tuple(_EVENTS_V1_FIELDS),
        render=render, labels=core.labels, fields=fields,
    )  # fmt: skip


_RENAMED = {
    "involvedObject": "regarding", "message": "note", "reportingComponent": "reportingController",
    "source": "deprecatedSource", "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp", "count": "deprecatedCount",
}  # fmt: skip


def event_v1(manifest: Manifest) -> Manifest:
    """An event of the core as ``events.k8s.io/v1`` shows it: the same fields under that group's names."""
    renamed = {_RENAMED.get(key, key): value for key, value in manifest.items()}
    for key in ("reportingController", "reportingInstance"):
        if not renamed.get(key):
            renamed.pop(key, None)
    return {"eventTime": None, **renamed}


class Shown(TypedDict):
    """The part of a `Resource` that depends on the model's snapshots."""

    render: Callable[[Snapshot], Manifest]
    labels: Callable[[Snapshot], Mapping[str, str]]
    fields: Callable[[Snapshot], Mapping[str, str]]


def shown(render: Callable[[Any], Manifest], *fields: str) -> Shown:
    """Labels and `fields` (dotted paths) read off the manifest: for types so few that rendering costs nothing."""

    def labels_of(snapshot: Snapshot) -> Mapping[str, str]:
        found: Mapping[str, str] = render(snapshot)["metadata"].get("labels") or {}
        return found

    def fields_of(snapshot: Snapshot) -> Mapping[str, str]:
        manifest = render(snapshot)
        return {each: _at(manifest, each) for each in (*_NAMED, *fields)}

    return Shown(render=render, labels=labels_of, fields=fields_of)


def _at(manifest: Manifest, path: str) -> str:
    value: Any = manifest
    for key in path.split("."):
        value = value.get(key) if isinstance(value, dict) else None
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
