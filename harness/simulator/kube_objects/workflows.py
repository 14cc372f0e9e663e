"""Manifests of workflows, and the events that Argo's controller writes about them."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from harness.model.argo.nodes import node_id
from harness.simulator.argo.locks import Locks
from harness.simulator.argo.nodes import Run, shown
from harness.simulator.argo.templates import scope_of
from harness.simulator.kfp.view import Stamp
from harness.simulator.kube_api import Manifest
from harness.simulator.kube_objects.snapshots import WARNING, Worded, metadata
from harness.simulator.workflows import workflow as phases
from harness.simulator.workflows.nodes import POD, Node, nodes_of

_ARGO = "workflows.argoproj.io/"
CONTROLLER = "workflow-controller"
# client-go writes this many similar events of one object one by one, and the following into one.
_SINGLE = 9
COMBINED = "(combined from similar events): "
_SAID = {
    phases.SUCCEEDED: "WorkflowNodeSucceeded",
    phases.FAILED: "WorkflowNodeFailed",
    phases.ERROR: "WorkflowNodeError",
}
_RUNNING = "WorkflowNodeRunning"
_COUNTED = frozenset({POD, "Suspend"})  # types of nodes that progress is counted in


class Told(NamedTuple):
    """An event about a workflow: its content, the node it is about, and its number among its kind; 1 stands alone."""

    what: Worded
    node: Node | None
    number: int


class WorkflowSnapshot(NamedTuple):
    """A workflow at one resource version, with what of its manifest the model doesn't have: `more` is of the status."""

    name: str
    namespace: str
    phase: str
    message: str
    started: float | None
    finished: float | None
    nodes: tuple[Node, ...]
    metadata: Mapping[str, Any]
    spec: Mapping[str, Any]
    more: Mapping[str, Any] = MappingProxyType({})


def snapshot_of(
    workflow: phases.Workflow, nodes: Iterable[Node], message: str, metadata: Manifest, spec: Mapping[str, Any],
    **more: Any,
) -> WorkflowSnapshot:  # fmt: skip
    """A copy of a workflow's current state; `metadata` gets the controller's labels and annotations."""
    if workflow.phase or workflow.started is not None:
        over = "true" if workflow.over else "false"
        its = {f"{_ARGO}completed": over, f"{_ARGO}phase": workflow.phase}
        metadata["labels"] = {**(metadata.get("labels") or {}), **its}
    if workflow.started is not None and not workflow.held:  # what is new is marked, and what was held no longer is
        metadata["annotations"] = {**(metadata.get("annotations") or {}), f"{_ARGO}pod-name-format": "v2"}
    return WorkflowSnapshot(
        workflow.name, workflow.namespace, workflow.phase, message, workflow.started, workflow.finished, tuple(nodes),
        metadata, spec, {key: value for key, value in more.items() if value},
    )  # fmt: skip


def snapshot_of_run(
    workflow: phases.Workflow, run_name: str, retries: int, waits: Mapping[str, str], stamp: Stamp
) -> WorkflowSnapshot:
    """The workflow of a pipeline's run, without the compiled templates and their inputs.

    Args:
        workflow: the workflow.
        run_name: the run's.
        retries: of every node, by KFP's defaults; 0 is none.
        waits: as for `nodes_of`.
        stamp: writes an instant.
    """
    deadline = _deadline_message(workflow, stamp)
    kept = {"pipeline/persistedFinalState": "true"} if workflow.kept else {}
    about = metadata(
        "workflow", workflow.name, stamp(workflow.created), workflow.namespace, generateName=workflow.name[:-5],
        annotations={"pipelines.kubeflow.org/run_name": run_name}, labels={"pipeline/runid": workflow.run_id, **kept},
    )  # fmt: skip
    component = {"pipelines.kubeflow.org/v2_component": "true"}
    spec: dict[str, Any] = {
        "entrypoint": "entrypoint",
        "podMetadata": {"annotations": component, "labels": {"pipeline/runid": workflow.run_id, **component}},
        "serviceAccountName": "pipeline-runner",
    }
    if retries and workflow.started is not None:
        strategy = {"limit": str(retries), "retryPolicy": "OnError"}
        spec["templateDefaults"] = {"inputs": {}, "metadata": {}, "outputs": {}, "retryStrategy": strategy}
    nodes = nodes_of(workflow, wrapped=retries > 0, deadline=deadline, waits=waits)
    return snapshot_of(workflow, nodes, deadline or workflow.message, about, spec)


def snapshot_of_argo(run: Run, waits: Mapping[str, str], locks: Locks) -> WorkflowSnapshot:
    """A workflow of Argo's own; `waits` as for `nodes_of`."""
    spec = {**run.manifest["spec"], "shutdown": run.shutdown} if run.shutdown else run.manifest["spec"]
    stored = {key: dict(each) for key, each in run.templates.items() if scope_of(key)}
    held = locks.status(run.holder()) if not run.over else None
    about = dict(run.manifest["metadata"])
    return snapshot_of(run, shown(run, waits), run.message, about, spec, storedTemplates=stored, synchronization=held)


def _deadline_message(workflow: phases.Workflow, stamp: Stamp) -> str:
    """The message of what a termination ended: KFP sets the workflow's deadline to its creation."""
    if not (workflow.stopping and workflow.over):
        return ""
    day, _, time = stamp(workflow.created).removesuffix("Z").partition("T")
    return f"retry exceeded workflow deadline {day} {time} +0000 UTC"


def render_workflow(workflow: WorkflowSnapshot, stamp: Stamp) -> dict[str, Any]:
    """The manifest of a workflow."""
    return {"metadata": workflow.metadata, "spec": workflow.spec, "status": _status(workflow, stamp)}


def _status(workflow: WorkflowSnapshot, stamp: Stamp) -> dict[str, Any]:
    times: dict[str, Any] = {"finishedAt": _at(workflow.finished, stamp), "startedAt": _at(workflow.started, stamp)}
    message = {"message": workflow.message} if workflow.message else {}
    if workflow.started is None:
        waits = {"phase": workflow.phase, "progress": "0/0"} if message else {}
        return times | message | waits | dict(workflow.more)
    nodes = {node.path: node for node in workflow.nodes}
    running = any(node.type == POD and node.phase == phases.RUNNING for node in workflow.nodes)
    conditions = [{"status": str(running), "type": "PodRunning"}] if nodes else []
    if workflow.finished is not None:
        conditions.append({"status": "True", "type": "Completed"})
    below = _below(nodes)
    of_nodes = {
        "artifactGCStatus": {"notSpecified": True},
        "artifactRepositoryRef": {"default": True},
        "nodes": {
            node_id(workflow.name + path, workflow.name): _node(workflow.name, node, nodes, below[path], stamp)
            for path, node in nodes.items()
        },
        "resourcesDuration": _used(list(nodes.values())),
    }
    return {
        "conditions": conditions,
        "phase": workflow.phase,
        "progress": _progress(list(nodes.values())),
        **(of_nodes if nodes else {}),
        **times,
        **message,
        **workflow.more,
    }


def _at(instant: float | None, stamp: Stamp) -> str | None:
    return stamp(instant) if instant is not None else None


def _node(workflow: str, node: Node, nodes: dict[str, Node], below: frozenset[str], stamp: Stamp) -> dict[str, Any]:
    pods = [node] if node.type in _COUNTED else [nodes[each] for each in below]
    skipped = node.type == "Skipped"
    outputs = {
        "parameters": [{"name": key, "value": value} for key, value in node.outputs.items()],
        "exitCode": str(node.exit_code) if node.exit_code is not None else "",
    }
    given = {
        "boundaryID": node_id(workflow + node.within, workflow) if node.within is not None else None,
        "message": node.message or None,
        "children": [node_id(workflow + child, workflow) for child in node.children] or None,
        "outboundNodes": [node_id(workflow + each, workflow) for each in node.outbound] or None,
        "nodeFlag": dict(node.flag) if node.flag is not None else None,
        "hostNodeName": node.host or None,
        "progress": None if skipped else _progress(pods),
        "resourcesDuration": _used(pods) if node.finished is not None and not skipped else None,
        "taskResultSynced": True if node.type == POD else None,
        "outputs": {key: value for key, value in outputs.items() if value} or None,
        "templateName": node.template or None,
    }
    return {
        "id": node_id(workflow + node.path, workflow),
        "name": workflow + node.path,
        "displayName": node.display(workflow),
        "type": node.type,
        "templateScope": f"local/{workflow}",
        "phase": node.phase,
        "startedAt": stamp(node.started),
        "finishedAt": _at(node.finished, stamp),
        **{key: value for key, value in given.items() if value is not None},
        **node.more,
    }


def _below(nodes: dict[str, Node]) -> dict[str, frozenset[str]]:
    """By path: the pods at the node and at all that follow it."""
    found: dict[str, frozenset[str]] = {}
    for path, node in reversed(nodes.items()):  # a node comes before those that follow it
        own = frozenset({path} if node.type in _COUNTED else ())
        found[path] = own.union(*(found.get(child, own) for child in node.children))
    return found


def _progress(nodes: list[Node]) -> str:
    phase = [node.phase for node in nodes if node.type in _COUNTED]
    return f"{phase.count(phases.SUCCEEDED)}/{len(phase)}"


def _used(nodes: list[Node]) -> dict[str, int]:
    cpu, memory = (sum(node.used[k] for node in nodes) for k in (0, 1))
    return {"cpu": cpu, "memory": memory}


class WorkflowEvents:
    """Finds the events of a workflow's change: of each node that began or ended, and of the workflow itself."""

    def __init__(self) -> None:
        self._phases: dict[str, dict[str | None, str]] = {}  # by workflow and path; none is the workflow itself
        self._counts: dict[tuple[str, str], int] = {}  # by workflow and reason

    def of(self, now: WorkflowSnapshot) -> Iterator[Told]:
        """The events of one change, in order."""
        if now.started is None:
            return
        known = self._phases.setdefault(now.name, {})
        if known.get(None) != now.phase:
            known[None] = now.phase
            yield Told(_of_workflow(now), None, 1)
        for node in now.nodes:
            yield from self._of_node(now, node, known)

    def forget(self, name: str) -> list[str]:
        """A workflow was removed; returns the reasons of its events."""
        self._phases.pop(name, None)
        keys = [count for count in self._counts if count[0] == name]
        for key in keys:
            del self._counts[key]
        return [reason for _, reason in keys]

    def _of_node(self, workflow: WorkflowSnapshot, node: Node, known: dict[str | None, str]) -> Iterator[Told]:
        before, said = known.get(node.path), _SAID.get(node.phase)
        known[node.path] = node.phase
        if before == node.phase:
            return
        text = f"node {workflow.name}{node.path}" + (f": {node.message}" if node.message else "")
        if before != phases.RUNNING and (said or node.phase == phases.RUNNING):
            yield self._told(workflow, node, _RUNNING, f"Running {text}")
        if said:
            yield self._told(workflow, node, said, f"{node.phase} {text}")

    def _told(self, workflow: WorkflowSnapshot, node: Node, reason: str, text: str) -> Told:
        key = workflow.name, reason
        count = self._counts[key] = self._counts.get(key, 0) + 1
        combined = count > _SINGLE
        kind = WARNING if reason in {_SAID[phases.FAILED], _SAID[phases.ERROR]} else "Normal"
        what = Worded(reason, COMBINED + text if combined else text, CONTROLLER, kind)
        return Told(what, node, count - _SINGLE if combined else 1)


def _of_workflow(workflow: WorkflowSnapshot) -> Worded:
    if workflow.phase == phases.SUCCEEDED:
        return Worded("WorkflowSucceeded", "Workflow completed", CONTROLLER)
    if workflow.phase in {phases.FAILED, phases.ERROR}:
        return Worded("WorkflowFailed", workflow.message, CONTROLLER, WARNING)
    return Worded("WorkflowRunning", "Workflow Running", CONTROLLER)
