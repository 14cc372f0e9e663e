"""Manifests of workflows, and the events that Argo's controller writes about them."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from harness.simulator.engine.calendar import Calendar
from harness.simulator.kfp.view import Stamp
from harness.simulator.kube_objects.snapshots import WARNING, Worded, WorkflowSnapshot, metadata
from harness.simulator.workflows import workflow as phases
from harness.simulator.workflows.graph import ON_EXIT
from harness.simulator.workflows.node_paths import node_id
from harness.simulator.workflows.nodes import POD, Node

CONTROLLER = "workflow-controller"
# client-go writes so many similar events of one object one by one, and the following into one.
_SINGLE = 9
COMBINED = "(combined from similar events): "
_SAID = {
    phases.SUCCEEDED: "WorkflowNodeSucceeded",
    phases.FAILED: "WorkflowNodeFailed",
    phases.ERROR: "WorkflowNodeError",
}
_RUNNING = "WorkflowNodeRunning"


class Told(NamedTuple):
    """An event about a workflow: its content, the node it is about, and its number among its kind; 1 stands alone."""

    what: Worded
    node: Node | None
    number: int


def deadline_message(workflow: phases.Workflow, stamp: Stamp) -> str:
    """The message of what a termination ended: KFP sets the workflow's deadline to its creation."""
    if not (workflow.stopping and workflow.over):
        return ""
    day, _, time = stamp(workflow.created).removesuffix("Z").partition("T")
    return f"retry exceeded workflow deadline {day} {time} +0000 UTC"


def render_workflow(workflow: WorkflowSnapshot, calendar: Calendar) -> dict[str, Any]:
    """The manifest of a workflow, without the compiled templates and their inputs."""
    stamp, namespace = calendar.stamp, workflow.namespace
    labels = {"pipeline/runid": workflow.run_id}
    annotations = {"pipelines.kubeflow.org/run_name": workflow.run_name}
    if workflow.started is not None or workflow.held:
        labels["workflows.argoproj.io/completed"] = "true" if workflow.finished is not None else "false"
        labels["workflows.argoproj.io/phase"] = workflow.phase
    if workflow.started is not None and not workflow.held:
        annotations["workflows.argoproj.io/pod-name-format"] = "v2"
    if workflow.kept:
        labels["pipeline/persistedFinalState"] = "true"
    more = {"generateName": workflow.name[:-5], "annotations": annotations, "labels": labels}
    return {
        "metadata": metadata("workflow", workflow.name, stamp(workflow.created), namespace, **more),
        "spec": _spec(workflow),
        "status": _status(workflow, stamp),
    }


def _spec(workflow: WorkflowSnapshot) -> dict[str, Any]:
    its = {"pipeline/runid": workflow.run_id, "pipelines.kubeflow.org/v2_component": "true"}
    component = {"pipelines.kubeflow.org/v2_component": "true"}
    spec: dict[str, Any] = {
        "entrypoint": "entrypoint",
        "podMetadata": {"annotations": component, "labels": its},
        "serviceAccountName": "pipeline-runner",
    }
    if workflow.retries and workflow.started is not None:
        strategy = {"limit": str(workflow.retries), "retryPolicy": "OnError"}
        spec["templateDefaults"] = {"inputs": {}, "metadata": {}, "outputs": {}, "retryStrategy": strategy}
    return spec


def _status(workflow: WorkflowSnapshot, stamp: Stamp) -> dict[str, Any]:
    times: dict[str, Any] = {"finishedAt": _at(workflow.finished, stamp), "startedAt": _at(workflow.started, stamp)}
    message = {"message": workflow.message} if workflow.message else {}
    if workflow.started is None:
        return times | message | ({"phase": workflow.phase, "progress": "0/0"} if message else {})
    nodes = {node.path: node for node in workflow.nodes}
    running = any(node.type == POD and node.phase == phases.RUNNING for node in workflow.nodes)
    conditions = [{"status": str(running), "type": "PodRunning"}]
    if workflow.finished is not None:
        conditions.append({"status": "True", "type": "Completed"})
    below = _below(nodes)
    return {
        "artifactGCStatus": {"notSpecified": True},
        "artifactRepositoryRef": {"default": True},
        "conditions": conditions,
        "nodes": {
            node_id(workflow.name, path): _node(workflow, node, nodes, below[path], stamp)
            for path, node in nodes.items()
        },
        "phase": workflow.phase,
        "progress": _progress(list(nodes.values())),
        "resourcesDuration": _used(list(nodes.values())),
        **times,
        **message,
    }


def _at(instant: float | None, stamp: Stamp) -> str | None:
    return stamp(instant) if instant is not None else None


def _node(
    workflow: WorkflowSnapshot, node: Node, nodes: dict[str, Node], below: frozenset[str], stamp: Stamp
) -> dict[str, Any]:
    name, path = workflow.name, node.path
    pods = [node] if node.type == POD else [nodes[each] for each in below]
    skipped = node.type == "Skipped"
    given = {
        "boundaryID": node_id(name, node.within) if node.within else None,
        "message": node.message or None,
        "children": [node_id(name, each) for each in node.children] or None,
        "outboundNodes": [node_id(name, each) for each in node.outbound] or None,
        "nodeFlag": _flag(node, workflow),
        "hostNodeName": node.host or None,
        "progress": None if skipped else _progress(pods),
        "resourcesDuration": _used(pods) if node.finished is not None and not skipped else None,
        "taskResultSynced": True if node.type == POD else None,
        "outputs": {"exitCode": str(node.exit_code)} if node.exit_code is not None else None,
    }
    return {
        "id": node_id(name, path),
        "name": name + path,
        "displayName": node.name if node.within else name + path,
        "type": node.type,
        "templateName": node.template,
        "templateScope": f"local/{name}",
        "phase": node.phase,
        "startedAt": stamp(node.started),
        "finishedAt": _at(node.finished, stamp),
        **{key: value for key, value in given.items() if value is not None},
    }


def _flag(node: Node, workflow: WorkflowSnapshot) -> dict[str, bool] | None:
    """Whether it is an attempt of a node that may be retried, or a hook; other wrappers have no flags."""
    hooked = {"hooked": True} if ON_EXIT in node.name else {}
    if node.type == "Retry" and not hooked:
        return None
    is_attempt = bool(workflow.retries) and node.type not in {"Skipped", "TaskGroup"}
    return hooked | ({"retried": True} if is_attempt else {})


def _below(nodes: dict[str, Node]) -> dict[str, frozenset[str]]:
    """By path: the pods at the node and at all that follow it."""
    found: dict[str, frozenset[str]] = {}
    for path, node in reversed(nodes.items()):  # a node comes before those that follow it
        own = frozenset({path} if node.type == POD else ())
        found[path] = own.union(*(found.get(each, own) for each in node.children))
    return found


def _progress(nodes: list[Node]) -> str:
    pods = [node for node in nodes if node.type == POD]
    return f"{sum(node.phase == phases.SUCCEEDED for node in pods)}/{len(pods)}"


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
        keys = [each for each in self._counts if each[0] == name]
        for key in keys:
            del self._counts[key]
        return [reason for _, reason in keys]

    def _of_node(self, workflow: WorkflowSnapshot, node: Node, known: dict[str | None, str]) -> Iterator[Told]:
        before, said = known.get(node.path), _SAID.get(node.phase)
        known[node.path] = node.phase
        if before == node.phase:
            return
        if before != phases.RUNNING and (said or node.phase == phases.RUNNING):
            yield self._told(workflow, node, _RUNNING, f"Running node {workflow.name}{node.path}")
        if said:
            text = f"{node.phase} node {workflow.name}{node.path}" + (f": {node.message}" if node.message else "")
            yield self._told(workflow, node, said, text)

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
    if workflow.phase == phases.FAILED:
        return Worded("WorkflowFailed", workflow.message, CONTROLLER, WARNING)
    return Worded("WorkflowRunning", "Workflow Running", CONTROLLER)
