"""Kubernetes events: which changes make one, and how it is worded."""

from datetime import UTC, datetime
from typing import Any, NamedTuple

from harness.simulator.cluster import Change, Pod
from harness.simulator.kfp.view import Calendar
from harness.simulator.kube.snapshots import EventSnapshot, uid

Manifest = dict[str, Any]
NORMAL, WARNING = "Normal", "Warning"
_MAIN = "spec.containers{main}"


class Worded(NamedTuple):
    """An event in words, still without its object."""

    reason: str
    message: str
    component: str
    type: str = NORMAL
    field: str = ""
    precise: bool = False


def pod_events(pod: Pod, change: Change, detail: str) -> list[Worded]:
    """The events that a change of a pod makes, in their order."""
    image = pod.images[0] if pod.images else ""
    node = pod.node.name if pod.node is not None else ""
    match change:
        case Change.SCHEDULED:
            message = f"Successfully assigned {pod.namespace}/{pod.name} to {node}"
            return [Worded("Scheduled", message, "default-scheduler", precise=True)]
        case Change.UNSCHEDULABLE:
            return [Worded("FailedScheduling", detail, "default-scheduler", WARNING, precise=True)]
        case Change.PULLING:
            return [Worded("Pulling", f'Pulling image "{image}"', "kubelet", field=_MAIN)]
        case Change.PULLED:
            return [Worded("Pulled", _pulled(pod, image), "kubelet", field=_MAIN)]
        case Change.STARTED:
            return [
                Worded("Created", "Created container: main", "kubelet", field=_MAIN),
                Worded("Started", "Started container main", "kubelet", field=_MAIN),
            ]
        case Change.SCALE_UP:
            return [Worded("TriggeredScaleUp", detail, "cluster-autoscaler")]
        case Change.NO_SCALE_UP:
            return [Worded("NotTriggerScaleUp", detail, "cluster-autoscaler")]
        case Change.TERMINATING if pod.started is not None:
            return [Worded("Killing", "Stopping container main", "kubelet", field=_MAIN)]
        case Change.EVICTED:
            return [Worded("Evicted", detail, "kubelet", WARNING)]
        case _:
            return []


def _pulled(pod: Pod, image: str) -> str:
    if pod.pulling is None or pod.pulled is None or pod.pulled <= pod.pulling:
        return f'Container image "{image}" already present on machine'
    took = f"{pod.pulled - pod.pulling:.3f}".rstrip("0").rstrip(".")
    return f'Successfully pulled image "{image}" in {took}s ({took}s including waiting)'


def render_event(event: EventSnapshot, calendar: Calendar) -> Manifest:
    """The manifest in the core group's form."""
    involved = {
        "kind": event.kind,
        "name": event.object,
        "uid": event.uid,
        "apiVersion": event.api_version,
    }
    if event.kind != "Node":
        involved["namespace"] = event.namespace
    if event.field:
        involved["fieldPath"] = event.field
    manifest: Manifest = {
        "metadata": {
            "name": event.name,
            "namespace": event.namespace,
            "uid": uid("event", event.namespace, event.name),
            "creationTimestamp": calendar.stamp(event.first),
        },
        "involvedObject": involved,
        "reason": event.reason,
        "message": event.message,
        "type": event.type,
        "reportingComponent": event.component,
        "reportingInstance": event.host,
    }
    if event.precise:
        return manifest | {
            "source": {},
            "firstTimestamp": None,
            "lastTimestamp": None,
            "eventTime": _microseconds(calendar.ns(event.at)),
            "action": "Scheduling" if event.reason == "FailedScheduling" else "Binding",
            "reportingInstance": f"{event.component}-simulated",
        }
    return manifest | {
        "source": {"component": event.component, **({"host": event.host} if event.host else {})},
        "firstTimestamp": calendar.stamp(event.first),
        "lastTimestamp": calendar.stamp(event.at),
        "count": event.times,
        "eventTime": None,
    }


def _microseconds(at: int) -> str:
    second, rest = divmod(at, 10**9)
    return f"{datetime.fromtimestamp(second, UTC):%Y-%m-%dT%H:%M:%S}.{rest // 1000:06d}Z"


def event_fields(event: EventSnapshot) -> dict[str, str]:
    """Values of the field selectors."""
    return {
        "metadata.name": event.name,
        "metadata.namespace": event.namespace,
        "involvedObject.kind": event.kind,
        "involvedObject.namespace": event.namespace if event.kind != "Node" else "",
        "involvedObject.name": event.object,
        "involvedObject.uid": event.uid,
        "involvedObject.apiVersion": event.api_version,
        "involvedObject.resourceVersion": "",
        "involvedObject.fieldPath": event.field,
        "reason": event.reason,
        "reportingComponent": event.component,
        "source": "" if event.precise else event.component,
        "type": event.type,
    }
