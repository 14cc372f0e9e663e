"""Rows of the API server as JSON of its REST gateway.

Names are snake_case, unset fields are left out, timestamps are whole seconds, and future ones are in 1970.

A run has a task for each node of its workflow, groups and retry wrappers too, as of the last report. The API server
gives each node an id of its own, lists the tasks in the order of these ids, and names those that follow a task by
Argo's ids, under ``pod_name``. It adds to a task's history what a report shows, so that a state between two reports is
never seen.
"""

from collections.abc import Callable, Iterator
from hashlib import md5
from typing import Any
from uuid import UUID

from harness.model.argo.nodes import node_id
from harness.simulator.kfp.records import Experiment, Pipeline, Run, Version
from harness.simulator.workflows import workflow as phases
from harness.simulator.workflows.nodes import POD, SKIP, Node, nodes_of

Document = dict[str, Any]
Stamp = Callable[[float], str]
NEVER = "1970-01-01T00:00:00Z"


def _set(**fields: object) -> Document:
    return {name: value for name, value in fields.items() if value not in (None, "", [], {})}


def _plain(value: Any) -> Any:
    """A value as in the JSON of protobuf, which has no decimal point in whole numbers."""
    if isinstance(value, dict):
        return {name: _plain(value[name]) for name in sorted(value)}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def experiment(row: Experiment, stamp: Stamp) -> Document:
    """The Experiment message of a row."""
    return _set(
        experiment_id=row.id,
        display_name=row.name,
        description=row.description,
        created_at=stamp(row.created),
        namespace=row.namespace,
        storage_state=row.storage_state,
        last_run_created_at=NEVER if row.last_run is None else stamp(row.last_run),
    )


def pipeline(row: Pipeline, stamp: Stamp) -> Document:
    """The Pipeline message of a row."""
    return _set(pipeline_id=row.id, namespace=row.namespace, **_described(row, stamp))


def version(row: Version, stamp: Stamp) -> Document:
    """The PipelineVersion message of a row."""
    return _set(
        pipeline_id=row.pipeline_id, pipeline_version_id=row.id, pipeline_spec=_source(row), **_described(row, stamp)
    )


def _described(row: Pipeline | Version, stamp: Stamp) -> Document:
    return {
        "display_name": row.name, "name": row.name, "description": row.description, "created_at": stamp(row.created),
    }  # fmt: skip


def _source(row: Version) -> Document:
    spec: Document = _plain(row.spec)
    if not row.platform:
        return spec
    platform = {"platforms": {"kubernetes": {"deploymentSpec": {"executors": row.platform}}}}
    return {"pipeline_spec": spec, "platform_spec": platform}


def run(row: Run, stamp: Stamp, *, wrapped: bool = True) -> Document:
    """The Run message of a row, the same from CreateRun, GetRun and ListRuns; `wrapped` as in `task_details`."""
    reference = {"pipeline_id": row.version.pipeline_id, "pipeline_version_id": row.version.id}
    return _set(
        experiment_id=row.experiment_id,
        run_id=row.id,
        display_name=row.name,
        storage_state=row.storage_state,
        description=row.description,
        pipeline_version_reference=reference if row.by_reference else None,
        pipeline_spec=None if row.by_reference else _source(row.version),
        runtime_config=_set(parameters=_plain(dict(row.given)), pipeline_root=row.pipeline_root),
        service_account=row.service_account or ("default-editor" if row.namespace else "pipeline-runner"),
        created_at=stamp(row.created),
        scheduled_at=stamp(row.created),
        finished_at=NEVER if row.finished is None else stamp(row.finished),
        state=row.state,
        run_details=_set(task_details=task_details(row, stamp, wrapped=wrapped)),
        state_history=[_set(update_time=stamp(at), state=state) for at, state in row.history],
    )


NOT_OVER = "0001-01-01T00:00:00Z"
_STATES = {
    phases.SUCCEEDED: "SUCCEEDED",
    phases.SKIPPED: "SKIPPED",
    phases.OMITTED: "",  # KFP knows no such state
    phases.FAILED: "FAILED",
    phases.ERROR: "FAILED",
}


def task_details(run: Run, stamp: Callable[[float], str], *, wrapped: bool) -> list[Document]:
    """The tasks of a run; none before the first report of a workflow that the controller has taken up.

    `wrapped`: every node may be retried, see `nodes_of`.
    """
    workflow = run.workflow
    if workflow is None or not run.reports:
        return []
    known = run.reports[-1]
    nodes = {node.path: node for node in nodes_of(workflow, wrapped=wrapped) if node.started <= known}
    tasks = [_task(run, workflow.name, node, nodes, stamp) for node in nodes.values()]
    return sorted(tasks, key=lambda task: str(task["task_id"]))


def _task(run: Run, workflow: str, node: Node, nodes: dict[str, Node], stamp: Callable[[float], str]) -> Document:
    known = run.reports[-1]
    over = node.finished is not None and node.finished <= known
    history = list(_history(node, run.reports))
    task: Document = {
        "run_id": run.id,
        "task_id": str(UUID(bytes=md5(f"{run.id}{node.path}".encode(), usedforsecurity=False).digest(), version=4)),
        "display_name": node.display(workflow),
        "create_time": stamp(run.created),
        "start_time": stamp(node.started),
        "end_time": stamp(node.finished) if over and node.finished is not None else NOT_OVER,
        "state": history[-1][1],
        "state_history": [_set(update_time=stamp(at), state=state) for at, state in history],
        "child_tasks": [{"pod_name": node_id(workflow + path, workflow)} for path in node.children if path in nodes],
    }
    return _set(**task)


def _history(node: Node, reports: list[float]) -> Iterator[tuple[float, str]]:
    """The states that reports showed, each with the first report of it."""
    before = None
    for at in reports:
        state = _state(node, at) if at >= node.started else None
        if state is not None and state != before:
            yield at, state
            before = state


def _state(node: Node, at: float) -> str:
    if node.finished is not None and node.finished <= at:
        return _STATES[node.phase]
    if node.type == SKIP:
        return _STATES[node.phase]
    return "PENDING" if node.type == POD and (node.ran is None or node.ran > at) else "RUNNING"
