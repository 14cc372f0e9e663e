"""The resource types of the simulated cluster, with the rendering of their snapshots."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from harness.simulator.engine.calendar import Calendar
from harness.simulator.kube_api import Resource, resource
from harness.simulator.kube_objects import usage
from harness.simulator.kube_objects.config_maps import render_autoscaler_status
from harness.simulator.kube_objects.deployments import render_deployment
from harness.simulator.kube_objects.events import event_fields, render_event
from harness.simulator.kube_objects.nodes import node_fields, node_labels, render_node
from harness.simulator.kube_objects.pods import pod_fields, pod_labels, render_pod
from harness.simulator.kube_objects.workflows import render_workflow

Listed = Iterable[tuple[str, str, object]]  # namespace, name, snapshot
T = TypeVar("T")
# Types whose few objects are kept as manifests.
_AS_MANIFESTS = (
    resource.persistent_volume_claims, resource.resource_quotas, resource.services, *resource.ARGO_TYPES,
    *resource.DASK_TYPES, resource.machine_deployments,
)  # fmt: skip


class Computed(NamedTuple):
    """Listings that are computed from the model on every read."""

    endpoint_slices: Callable[[], Listed]
    node_usage: Callable[[], Listed]
    pod_usage: Callable[[], Listed]


def resource_types(
    calendar: Calendar, priorities: Mapping[int, str], computed: Computed, *, metrics_server: bool = True
) -> list[Resource]:
    """All types; `priorities` are the names of the PriorityClasses by value."""
    stamp, shown = calendar.stamp, resource.shown
    events = resource.events(
        render=_reads(lambda event: render_event(event, calendar)), labels=lambda _: {}, fields=_reads(event_fields)
    )
    return [
        resource.nodes(
            render=_reads(lambda node: render_node(node, stamp)), labels=_reads(node_labels), fields=_reads(node_fields)
        ),
        resource.pods(
            render=_reads(lambda pod: render_pod(pod, stamp, priorities)),
            labels=_reads(pod_labels),
            fields=_reads(pod_fields),
        ),
        events,
        resource.namespaces(**shown(dict, "status.phase")),
        *(manifest(**shown(dict)) for manifest in _AS_MANIFESTS),
        resource.config_maps(
            **shown(lambda found: found if isinstance(found, dict) else render_autoscaler_status(found, calendar))
        ),
        resource.endpoint_slices(**shown(dict), listing=computed.endpoint_slices),
        resource.deployments(
            **shown(lambda found: found if isinstance(found, dict) else render_deployment(found, stamp))
        ),
        resource.workflows(**shown(lambda found: found if isinstance(found, dict) else render_workflow(found, stamp))),
        *(_usage(calendar, computed) if metrics_server else ()),
    ]


def _usage(calendar: Calendar, computed: Computed) -> tuple[Resource, Resource]:
    """What metrics-server serves."""
    shown = resource.shown
    return (
        resource.node_metrics(
            **shown(lambda measured: usage.render_node(measured, calendar)), listing=computed.node_usage
        ),
        resource.pod_metrics(
            **shown(lambda measured: usage.render_pod(measured, calendar)), listing=computed.pod_usage
        ),
    )


def _reads(read: Callable[[Any], T]) -> Callable[[object], T]:
    """Adapt a reader of one kind of snapshot to the store, which types all of them as objects."""
    return read
