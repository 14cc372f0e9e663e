"""The resource types of a real cluster, still without the rendering of the model's snapshots.

``pods(render=…, labels=…, fields=…)`` is a `Resource`. For types with few objects, `shown` takes labels and fields
from the rendered manifest: ``namespaces(**shown(render, "status.phase"))``.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypedDict

from harness.simulator.kube_api import columns
from harness.simulator.kube_api.resource import ALL_VERBS, DOCUMENT_VERBS, Manifest, Resource, Snapshot

_NAMED = ("metadata.name", "metadata.namespace")
_ONE_BY_ONE = tuple(each for each in ALL_VERBS if each != "deletecollection")
_EVENT_FIELDS = (
    "involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
    "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason",
    "reportingComponent", "source", "type",
)  # fmt: skip


def _resource(
    kind: str, group: str = "", version: str = "v1", *, plural: str = "", short: str = "", namespaced: bool = True,
    fields: tuple[str, ...] = (), **more: Any,
) -> partial[Resource]:  # fmt: skip
    """A type without render, labels and fields; the given `fields` are selectable besides name and namespace."""
    return partial(
        Resource, group=group, version=version, plural=plural or f"{kind.lower()}s", kind=kind, namespaced=namespaced,
        short_names=tuple(short.split()), selectable=(*(_NAMED if namespaced else _NAMED[:1]), *fields), **more,
    )  # fmt: skip


nodes = _resource(
    "Node", short="no", namespaced=False, columns=columns.NODE_COLUMNS, fields=("spec.unschedulable",),
    subresources=("status",),
)  # fmt: skip
pods = _resource(
    "Pod", short="po", columns=columns.POD_COLUMNS, categories=("all",), returns_deleted=True,
    verbs=DOCUMENT_VERBS,
    subresources=("eviction", "status"),
    fields=(
        "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
        "spec.hostNetwork", "status.phase", "status.podIP", "status.nominatedNodeName",
    ),
)  # fmt: skip
events = _resource("Event", short="ev", columns=columns.EVENT_COLUMNS, fields=_EVENT_FIELDS)
namespaces = _resource(
    "Namespace", short="ns", namespaced=False,
    fields=("status.phase",), subresources=("status",), verbs=_ONE_BY_ONE,
)  # fmt: skip
persistent_volume_claims = _resource(
    "PersistentVolumeClaim", short="pvc", columns=columns.CLAIM_COLUMNS, returns_deleted=True, subresources=("status",)
)
config_maps = _resource("ConfigMap", short="cm", verbs=DOCUMENT_VERBS)
storage_classes = _resource(
    "StorageClass", "storage.k8s.io", plural="storageclasses", short="sc", namespaced=False, returns_deleted=True,
)  # fmt: skip
endpoint_slices = _resource("EndpointSlice", "discovery.k8s.io")
deployments = _resource(
    "Deployment", "apps", short="deploy", columns=columns.DEPLOYMENT_COLUMNS, categories=("all",),
    subresources=("scale", "status"),
)  # fmt: skip
replica_sets = _resource("ReplicaSet", "apps", short="rs", categories=("all",), subresources=("status",))
services = _resource(
    "Service", short="svc", categories=("all",), returns_deleted=True,
    subresources=("status",), fields=("spec.clusterIP", "spec.type"), verbs=_ONE_BY_ONE,
)  # fmt: skip
resource_quotas = _resource(
    "ResourceQuota", short="quota", columns=columns.QUOTA_COLUMNS, returns_deleted=True, subresources=("status",)
)
priority_classes = _resource(
    "PriorityClass", "scheduling.k8s.io", plural="priorityclasses", short="pc", namespaced=False,
    columns=columns.PRIORITY_CLASS_COLUMNS,
)  # fmt: skip
# Of nodes, in the namespace kube-node-lease: `kubectl describe node` shows when each was renewed.
leases = _resource("Lease", "coordination.k8s.io")
_of_argo = partial(_resource, group="argoproj.io", version="v1alpha1", custom=True, verbs=DOCUMENT_VERBS)
workflows = _of_argo("Workflow", short="wf", columns=columns.WORKFLOW_COLUMNS)
workflow_templates = _of_argo("WorkflowTemplate", short="wftmpl")
cluster_workflow_templates = _of_argo(
    "ClusterWorkflowTemplate", short="clusterwftmpl cwft", namespaced=False
)  # fmt: skip
cron_workflows = _of_argo("CronWorkflow", short="cwf cronwf")
ARGO_TYPES = (workflow_templates, cluster_workflow_templates, cron_workflows)
_of_dask = partial(_resource, group="kubernetes.dask.org", custom=True, verbs=DOCUMENT_VERBS)
dask_clusters = _of_dask("DaskCluster", short="dsk", columns=columns.DASK_CLUSTER_COLUMNS)
dask_worker_groups = _of_dask("DaskWorkerGroup")
dask_autoscalers = _of_dask("DaskAutoscaler")
DASK_TYPES = (dask_clusters, dask_worker_groups, dask_autoscalers)
machine_deployments = _resource(  # node pools, as Cluster API manages them
    "MachineDeployment", "cluster.x-k8s.io", "v1beta1", short="md", columns=columns.MACHINES_COLUMNS, custom=True,
    subresources=("scale", "status"),
)  # fmt: skip
node_metrics = _resource("NodeMetrics", "metrics.k8s.io", "v1beta1", plural="nodes", namespaced=False)
pod_metrics = _resource("PodMetrics", "metrics.k8s.io", "v1beta1", plural="pods")

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

    return _resource(
        "Event", "events.k8s.io", short="ev", columns=columns.EVENT_COLUMNS, fields=tuple(_EVENTS_V1_FIELDS)[2:]
    )(render=render, labels=core.labels, fields=fields)


_RENAMED = {
    "involvedObject": "regarding", "message": "note", "reportingComponent": "reportingController",
    "source": "deprecatedSource", "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp", "count": "deprecatedCount",
}  # fmt: skip


def event_v1(manifest: Manifest) -> Manifest:
    """A core event as ``events.k8s.io/v1`` shows it: the same fields under other names."""
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
    """Read labels and `fields` (dotted paths) from the manifest: for types with few objects, where that is cheap."""

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
