"""The cluster's Kubernetes events: written, combined, and dropped after an hour."""

from collections import deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import MappingProxyType

from harness.model.argo.nodes import node_id
from harness.simulator.engine.calendar import Calendar
from harness.simulator.kube_api import ObjectStore
from harness.simulator.kube_objects.snapshots import EventSnapshot, Subject, Worded, uid
from harness.simulator.kube_objects.workflows import COMBINED, Told, WorkflowEvents, WorkflowSnapshot
from harness.simulator.workflows.nodes import Node

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
