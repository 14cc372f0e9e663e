"""Kubernetes events: the changes that cause them, and their messages."""

from collections.abc import Callable
from datetime import UTC, datetime

from harness.simulator.cluster import Change, Pod
from harness.simulator.cluster.kubelet import DEADLINE, EVICTED
from harness.simulator.engine.calendar import Calendar
from harness.simulator.kube_api import Manifest
from harness.simulator.kube_objects.snapshots import (
    NORMAL,
    WARNING,
    EventSnapshot,
    Worded,
    main_container,
    metadata,
    pod_uid_of,
)

_GROUPS = {"Workflow": "argoproj.io/v1alpha1", "ReplicaSet": "apps/v1"}  # of objects outside the core group
# Components that write events by their reasons; others are of the controller manager.
_COMPONENTS = {
    "FailedAttachVolume": "attachdetach-controller", "Preempted": "default-scheduler",
    "NodeNotReady": "node-controller", "TaintManagerEviction": "taint-eviction-controller",
    **dict.fromkeys(("Pending", "Inadmissible", "EvictedDueToPreempted", "PodsReadyTimeout"), "kueue-admission"),
    **dict.fromkeys(
        ("FailedBinding", "ProvisioningFailed", "ExternalProvisioning", "WaitForFirstConsumer", "ClaimLost"),
        "persistentvolume-controller",
    ),
}  # fmt: skip
_NORMAL = frozenset({"NotTriggerScaleUp", "ExternalProvisioning", "WaitForFirstConsumer", "Preempted", "ScaleDown"})
_ACTIONS = {"FailedScheduling": "Scheduling", "Preempted": "Preempting"}


def pod_events(pod: Pod, change: Change, detail: str) -> list[Worded]:
    """The events of a pod's change, in order."""
    word = _WORDINGS.get(change)
    return word(pod, detail) if word is not None else []


def not_created(refusal: str) -> Worded:
    """The event of a ReplicaSet whose pod the API server refuses."""
    return Worded("FailedCreate", f"Error creating: {refusal}", "replicaset-controller", WARNING)


def _scheduled(pod: Pod, _: str) -> list[Worded]:
    node = pod.node.name if pod.node is not None else ""
    message = f"Successfully assigned {pod.namespace}/{pod.name} to {node}"
    return [Worded("Scheduled", message, "default-scheduler", precise=True)]


def _of_main(pod: Pod, reason: str, message: str) -> Worded:
    """The kubelet's event about the main container."""
    return Worded(reason, message, "kubelet", field=f"spec.containers{{{main_container(pod)}}}")


def _started(pod: Pod, _: str) -> list[Worded]:
    name = main_container(pod)
    return [
        _of_main(pod, "Created", f"Created container: {name}"),
        _of_main(pod, "Started", f"Started container {name}"),
    ]


def _stated(pod: Pod, _: str) -> list[Worded]:
    """An event of the component that states something."""
    if pod.words is None:
        return []
    source, reason, message, waiting, _about = pod.words
    if source in {"kubelet-event", "waiting"}:
        if waiting and "Image" not in waiting:  # the kubelet repeats what the runtime said
            message = f"Error: {message.removeprefix('Error: ')}"
        failed = [Worded(reason, message, "kubelet", WARNING)]
        of_image = [_of_main(pod, "Failed", f"Error: {waiting}")._replace(type=WARNING)] if "Image" in waiting else []
        return failed + of_image
    component = "cluster-autoscaler" if source == "autoscaler" else _COMPONENTS.get(reason, "kube-controller-manager")
    return [Worded(reason, message, component, NORMAL if reason in _NORMAL else WARNING)]


def _over(pod: Pod, _: str) -> list[Worded]:
    if pod.reason not in {DEADLINE, EVICTED}:
        return []
    return [_of_main(pod, pod.reason, pod.message)._replace(type=WARNING if pod.reason == EVICTED else NORMAL)]


def _killing(pod: Pod, _: str) -> list[Worded]:
    return [_of_main(pod, "Killing", f"Stopping container {main_container(pod)}")] if pod.started is not None else []


def _preempted(pod: Pod, _: str) -> list[Worded]:
    by, node = pod.preemptor, pod.node.name if pod.node is not None else ""
    whom = pod_uid_of(by.namespace, by.name, by.created) if by is not None else ""
    return [Worded("Preempted", f"Preempted by pod {whom} on node {node}", "default-scheduler", precise=True)]


_WORDINGS: dict[Change, Callable[[Pod, str], list[Worded]]] = {
    Change.SCHEDULED: _scheduled,
    Change.UNSCHEDULABLE: lambda _, detail: [
        Worded("FailedScheduling", detail, "default-scheduler", WARNING, precise=True)
    ],
    Change.PULLING: lambda pod, _: [_of_main(pod, "Pulling", f'Pulling image "{_image(pod)}"')],
    Change.PULLED: lambda pod, _: [_of_main(pod, "Pulled", _pulled(pod, _image(pod)))],
    Change.STATED: _stated,
    Change.OVER: _over,
    Change.STARTED: _started,
    Change.SCALE_UP: lambda _, detail: [Worded("TriggeredScaleUp", detail, "cluster-autoscaler")],
    Change.NO_SCALE_UP: lambda _, detail: [Worded("NotTriggerScaleUp", detail, "cluster-autoscaler")],
    Change.NODE_NOT_READY: lambda *_: [Worded("NodeNotReady", "Node is not ready", "node-controller", WARNING)],
    Change.PREEMPTED: _preempted,
    Change.TERMINATING: _killing,
}


def _image(pod: Pod) -> str:
    return pod.images[0] if pod.images else ""


def _pulled(pod: Pod, image: str) -> str:
    if pod.scheduled is None or pod.pulled is None or pod.pulled <= pod.scheduled:
        return f'Container image "{image}" already present on machine'
    took = f"{pod.pulled - pod.scheduled:.3f}".rstrip("0").rstrip(".")
    return f'Successfully pulled image "{image}" in {took}s ({took}s including waiting)'


def render_event(event: EventSnapshot, calendar: Calendar) -> Manifest:
    """The manifest in the core group's form."""
    about, what = event.about, event.what
    involved = {
        "kind": about.kind,
        "name": about.name,
        "uid": about.uid,
        "apiVersion": _GROUPS.get(about.kind, "v1"),
        "resourceVersion": str(event.version),
    }
    if about.kind != "Node":
        involved["namespace"] = about.namespace
    if what.field:
        involved["fieldPath"] = what.field
    more = {"annotations": dict(event.annotations)} if event.annotations else {}
    manifest: Manifest = {
        "metadata": metadata("event", event.name, calendar.stamp(event.written), about.namespace, **more),
        "involvedObject": involved,
        "reason": what.reason,
        "message": what.message,
        "type": what.type,
        "reportingComponent": what.component,
        "reportingInstance": event.host,
    }
    if what.precise:
        return manifest | {
            "source": {},
            "firstTimestamp": None,
            "lastTimestamp": None,
            "eventTime": _microseconds(calendar.ns(event.at)),
            "action": _ACTIONS.get(what.reason, "Binding"),
            "reportingInstance": f"{what.component}-simulated",
        }
    return manifest | {
        "source": {"component": what.component, **({"host": event.host} if event.host else {})},
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
    about, what = event.about, event.what
    return {
        "metadata.name": event.name,
        "metadata.namespace": about.namespace,
        "involvedObject.kind": about.kind,
        "involvedObject.namespace": about.namespace if about.kind != "Node" else "",
        "involvedObject.name": about.name,
        "involvedObject.uid": about.uid,
        "involvedObject.apiVersion": _GROUPS.get(about.kind, "v1"),
        "involvedObject.resourceVersion": str(event.version),
        "involvedObject.fieldPath": what.field,
        "reason": what.reason,
        "reportingComponent": what.component,
        "source": "" if what.precise else what.component,
        "type": what.type,
    }
