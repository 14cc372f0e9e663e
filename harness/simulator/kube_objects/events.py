"""Kubernetes events: the changes that cause them, and their messages."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from types import MappingProxyType

from harness.model.argo.nodes import node_id
from harness.simulator.cluster import Change, Pod
from harness.simulator.cluster.kubelet import DEADLINE, EVICTED
from harness.simulator.engine.calendar import Calendar
from harness.simulator.kube_api import Manifest, ObjectStore
from harness.simulator.kube_objects.snapshots import (
    NORMAL,
    WARNING,
    EventSnapshot,
    Subject,
    Worded,
    main_container,
    metadata,
    pod_uid_of,
    uid,
)
from harness.simulator.kube_objects.workflows import COMBINED, Told, WorkflowEvents, WorkflowSnapshot
from harness.simulator.workflows.nodes import Node

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


# --- the cluster's Kubernetes events: written, combined, and dropped after an hour -----------------------------------


_KEPT_S = 3600.0  # kube-apiserver's --event-ttl
_NONE: Mapping[str, str] = MappingProxyType({})


class EventLog:
    """Writes events to the store; `now` is the simulated time in seconds."""

    def __init__(self, store: ObjectStore, calendar: Calendar, now: Callable[[], float]) -> None:
        self._store = store
        self._calendar = calendar
        self._now = now
        self._written = 0
        self._kept: deque[tuple[float, str, str]] = deque()
        self._of_workflows = WorkflowEvents()
        self._combined: dict[tuple[str, str], EventSnapshot] = {}  # by workflow and reason

    def write(
        self,
        about: Subject,
        worded: Worded,
        host: str = "",
        annotations: Mapping[str, str] = _NONE,
        at: float | None = None,
    ) -> EventSnapshot:
        """A new event; `host` is the node, which only a kubelet names, and `at` when it happened, if not now."""
        now = self._now()
        at = now if at is None else at
        self._written += 1
        name = f"{about.name}.{self._calendar.ns(at) + self._written:x}"
        host = host if worded.component == "kubelet" else ""
        event = EventSnapshot(name, about, worded, host, at, 1, at, self._store.version, now, annotations)
        self._store.put("events", about.namespace, name, event)
        self._kept.append((now, about.namespace, name))
        while self._kept[0][0] < now - _KEPT_S:
            _, old_namespace, old_name = self._kept.popleft()
            self._store.delete("events", old_namespace, old_name)
        return event

    def workflow_changed(self, workflow: WorkflowSnapshot, when_sent: Callable[[Callable[[], None]], None]) -> None:
        """Argo's events about a workflow's change: they happen now, and are written when the controller sends them.

        `when_sent` calls a function when the controller has sent what it queues now.
        """
        told = tuple(self._of_workflows.of(workflow))
        if told:
            when_sent(partial(self._write_all, workflow, told, self._now()))

    def _write_all(self, workflow: WorkflowSnapshot, all_told: Iterable[Told], at: float) -> None:
        place = workflow.namespace, workflow.name
        about = Subject("Workflow", *place, uid("workflow", *place))
        for told in all_told:
            if told.node is None:
                self.write(about, told.what, at=at)
            else:
                self._of_node(about, told, told.node, at)

    def workflow_removed(self, name: str) -> None:
        """Forget a workflow."""
        for reason in self._of_workflows.forget(name):
            self._combined.pop((name, reason), None)

    def _of_node(self, about: Subject, told: Told, node: Node, at: float) -> None:
        """An event about a workflow's node; one that represents many is written again."""
        annotations = {
            "workflows.argoproj.io/node-id": node_id(about.name + node.path, about.name),
            "workflows.argoproj.io/node-name": about.name + node.path,
            "workflows.argoproj.io/node-start-time": str(self._calendar.ns(node.started)),
            "workflows.argoproj.io/node-type": node.type,
        }
        key = about.name, told.what.reason
        before = self._combined.get(key) if told.number > 1 else None
        if before is None:
            event = self.write(about, told.what, "", annotations, at)
        else:
            event = before._replace(what=told.what, at=at, times=told.number, annotations=annotations)
            self._store.put("events", about.namespace, event.name, event)
        if told.what.message.startswith(COMBINED):
            self._combined[key] = event
