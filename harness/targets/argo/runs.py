"""Workflows as runs: their state, and the tasks in their nodes."""

from collections.abc import Iterator, Mapping
from typing import Any

from harness.model.argo.manifest import RUN_NAME
from harness.model.argo.nodes import nodes_of_status, parent_of_node, task_of_node
from harness.model.phases import CANCELED, FAILED, SKIPPED, SUCCEEDED
from harness.targets.answers import instant
from harness.targets.target import ListedRun, TaskDetail

PHASE = "workflows.argoproj.io/phase"
COMPLETED = "workflows.argoproj.io/completed"
_TEMPLATE = "workflows.argoproj.io/workflow-template"  # that it was submitted from
_ENDS = {"Succeeded": SUCCEEDED, "Failed": FAILED, "Error": FAILED}
_STATES = {**_ENDS, "Skipped": SKIPPED, "Omitted": SKIPPED}
# Nodes that are what users call a task; the others are groups of these.
_TASKS = frozenset({"Pod", "HTTP", "Plugin", "Suspend", "Skipped"})
_SHUT_DOWN = "Stopped with strategy"


def listed_run(workflow: Mapping[str, Any]) -> ListedRun:
    """The run that a workflow carries out, from its object or from its metadata alone.

    A workflow that was shut down and failed for that reason was canceled.
    """
    metadata, status = workflow["metadata"], workflow.get("status") or {}
    labels, template = metadata.get("labels") or {}, (workflow.get("spec") or {}).get("workflowTemplateRef") or {}
    phase = str(status.get("phase") or labels.get(PHASE) or "Pending")
    message = str(status.get("message") or "")
    state = _ENDS.get(phase, phase.upper())
    if state == FAILED and message.startswith(_SHUT_DOWN):
        state = CANCELED
    return ListedRun(
        id=str(metadata["name"]),
        name=str((metadata.get("annotations") or {}).get(RUN_NAME) or metadata["name"]),
        state=state,
        created_at=instant(metadata.get("creationTimestamp")) or 0,
        ended_at=instant(status.get("finishedAt")) if phase in _ENDS else None,
        error=message if state == FAILED else "",
        pipeline=str(template.get("name") or labels.get(_TEMPLATE) or metadata.get("generateName") or "").rstrip("-"),
        namespace=str(metadata.get("namespace") or ""),
    )


def tasks_of(workflow: Mapping[str, Any]) -> tuple[TaskDetail, ...]:
    """The tasks in a workflow's nodes, by start: each attempt once, without the groups that contain tasks.

    Raises:
        ValueError: the compressed nodes can't be read.
    """
    nodes = nodes_of_status(workflow.get("status") or {}).values()
    task_details = _tasks([node for node in nodes if _is_task(node)], str(workflow["metadata"]["name"]))
    return tuple(sorted(task_details, key=lambda task: (task.started_at, task.name, task.id)))


def _is_task(node: Mapping[str, Any]) -> bool:
    """Whether a node is a task: from the cache also a group, of which nothing else was executed.

    Source: GetNodeType in Argo's workflow/util, by which a memoized template with a retry strategy is a Retry node.
    """
    return node.get("type") in _TASKS or _is_cached(node)


def _is_cached(node: Mapping[str, Any]) -> bool:
    return bool((node.get("memoizationStatus") or {}).get("hit"))


def _tasks(nodes: list[Mapping[str, Any]], workflow: str) -> Iterator[TaskDetail]:
    for node in nodes:
        state = _STATES.get(str(node.get("phase")), str(node.get("phase") or "").upper())
        name = str(node.get("name") or "")
        yield TaskDetail(
            id=str(node.get("id") or parent_of_node(name)),
            name=task_of_node(name, workflow),
            state=state,
            started_at=instant(node.get("startedAt")) or 0,
            ended_at=instant(node.get("finishedAt")),
            error=str(node.get("message") or "") if state == FAILED else "",
            cached=_is_cached(node),
        )
