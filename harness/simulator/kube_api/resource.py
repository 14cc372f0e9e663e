"""Resource types: names, verbs, and the rendering of the model's snapshots."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypedDict

Snapshot = object  # an immutable value made by the model
Manifest = dict[str, Any]

ALL_VERBS = ("delete", "get", "list", "patch", "watch")
READ_VERBS = ("get", "list")
DOCUMENT_VERBS = ("create", *ALL_VERBS)


@dataclass(frozen=True, slots=True)
class Resource:
    """One Kubernetes resource type, and the rendering of the model's snapshots.

    With `listing`, nothing is stored: every read computes (namespace, name, snapshot).
    """

    group: str  # "" for the core
    version: str
    plural: str
    kind: str
    namespaced: bool
    render: Callable[[Snapshot], Manifest]  # without apiVersion, kind and metadata.resourceVersion
    labels: Callable[[Snapshot], Mapping[str, str]]
    fields: Callable[[Snapshot], Mapping[str, str]]  # values of the field selectors
    short_names: tuple[str, ...] = ()
    listing: Callable[[], Iterable[tuple[str, str, Snapshot]]] | None = None
    selectable: tuple[str, ...] = ("metadata.name", "metadata.namespace")  # supported field selectors
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS  # of stored types; computed ones have `READ_VERBS`
    subresources: tuple[str, ...] = ()  # any of "eviction", "scale"
    returns_deleted: bool = False  # a delete returns the object instead of a Status
    custom: bool = False  # from a CustomResourceDefinition: list items repeat their type

    @property
    def api_version(self) -> str:
        """Group and version, such as ``v1`` or ``apps/v1``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def can(self, verb: str) -> bool:
        """Whether the type supports the verb."""
        return verb in (self.verbs if self.listing is None else READ_VERBS)

    @property
    def qualified(self) -> str:
        """The plural as in error messages: ``pods``, ``deployments.apps``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


# --- the resource types of a real cluster, still without the rendering of the model's snapshots ----------------------
# ``pods(render=…, labels=…, fields=…)`` is a `Resource`. For types with few objects, `shown` takes labels and fields
# from the rendered manifest: ``namespaces(**shown(render, "status.phase"))``.


_NAMED = ("metadata.name", "metadata.namespace")
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


nodes = _resource("Node", short="no", namespaced=False, fields=("spec.unschedulable",))
pods = _resource(
    "Pod", short="po", categories=("all",), returns_deleted=True, verbs=DOCUMENT_VERBS, subresources=("eviction",),
    fields=(
        "spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
        "spec.hostNetwork", "status.phase", "status.podIP", "status.nominatedNodeName",
    ),
)  # fmt: skip
events = _resource("Event", short="ev", fields=_EVENT_FIELDS)
namespaces = _resource("Namespace", short="ns", namespaced=False, fields=("status.phase",))
persistent_volume_claims = _resource("PersistentVolumeClaim", short="pvc", returns_deleted=True)
config_maps = _resource("ConfigMap", short="cm", verbs=DOCUMENT_VERBS)
endpoint_slices = _resource("EndpointSlice", "discovery.k8s.io")
deployments = _resource("Deployment", "apps", short="deploy", categories=("all",), subresources=("scale",))
services = _resource("Service", short="svc", categories=("all",), fields=("spec.clusterIP", "spec.type"))
resource_quotas = _resource("ResourceQuota", short="quota", returns_deleted=True)
_of_argo = partial(_resource, group="argoproj.io", version="v1alpha1", custom=True, verbs=DOCUMENT_VERBS)
workflows = _of_argo("Workflow", short="wf")
workflow_templates = _of_argo("WorkflowTemplate", short="wftmpl")
cluster_workflow_templates = _of_argo("ClusterWorkflowTemplate", short="clusterwftmpl cwft", namespaced=False)
cron_workflows = _of_argo("CronWorkflow", short="cwf cronwf")
ARGO_TYPES = (workflow_templates, cluster_workflow_templates, cron_workflows)
_of_dask = partial(_resource, group="kubernetes.dask.org", custom=True, verbs=DOCUMENT_VERBS)
dask_clusters = _of_dask("DaskCluster", short="dsk")
dask_worker_groups = _of_dask("DaskWorkerGroup")
dask_autoscalers = _of_dask("DaskAutoscaler")
DASK_TYPES = (dask_clusters, dask_worker_groups, dask_autoscalers)
# Node pools, as Cluster API manages them.
machine_deployments = _resource(
    "MachineDeployment", "cluster.x-k8s.io", "v1beta1", short="md", custom=True, subresources=("scale",)
)
node_metrics = _resource("NodeMetrics", "metrics.k8s.io", "v1beta1", plural="nodes", namespaced=False)
pod_metrics = _resource("PodMetrics", "metrics.k8s.io", "v1beta1", plural="pods")


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
