"""Rows of the API server as JSON of its REST gateway.

Names are snake_case, unset fields are left out, timestamps are whole seconds, and future ones are in 1970.
"""

from collections.abc import Callable
from typing import Any

from harness.simulator.kfp import workflow as phases
from harness.simulator.kfp.graph import EXECUTOR, JOIN, fnv1a
from harness.simulator.kfp.records import Experiment, Pipeline, Run, Version
from harness.simulator.kfp.workflow import Step, Workflow

Document = dict[str, Any]
Stamp = Callable[[float], str]
NEVER = "1970-01-01T00:00:00Z"
_STATES = {
    phases.PENDING: "PENDING",
    phases.RUNNING: "RUNNING",
    phases.SUCCEEDED: "SUCCEEDED",
    phases.SKIPPED: "SKIPPED",
    phases.OMITTED: "SKIPPED",
    phases.FAILED: "FAILED",
    phases.ERROR: "FAILED",
}


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
        storage_state=row.storage_state,
        last_run_created_at=NEVER if row.last_run is None else stamp(row.last_run),
    )


def pipeline(row: Pipeline, stamp: Stamp) -> Document:
    """The Pipeline message of a row."""
    return _set(pipeline_id=row.id, **_described(row, stamp))


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


def run(row: Run, stamp: Stamp) -> Document:
    """The Run message of a row, the same from CreateRun, GetRun and ListRuns."""
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
        service_account=row.service_account or "pipeline-runner",
        created_at=stamp(row.created),
        scheduled_at=stamp(row.created),
        finished_at=NEVER if row.finished is None else stamp(row.finished),
        state=row.state,
        run_details=_set(task_details=_tasks(row, stamp)),
        state_history=[_set(update_time=stamp(at), state=state) for at, state in row.history],
    )


def _tasks(row: Run, stamp: Stamp) -> list[Document]:
    """One entry for each Argo node as of the last report."""
    workflow, known = row.workflow, row.reported
    if workflow is None or known is None or workflow.started is None or workflow.started > known:
        return []
    root = _set(
        run_id=row.id,
        task_id=_task_id(workflow.name),
        display_name=workflow.name,
        create_time=stamp(workflow.created),
        start_time=stamp(workflow.started),
        end_time=NEVER if workflow.finished is None or workflow.finished > known else stamp(workflow.finished),
        state=row.state,
    )
    tasks = [root]
    for index, step in enumerate(workflow.steps):
        if step is not None and step.state != phases.OMITTED and step.started <= known:
            tasks.append(_task(row, index, known, stamp))
    return tasks


def _task(row: Run, index: int, known: float, stamp: Stamp) -> Document:
    workflow = row.workflow
    assert workflow is not None
    plan, step = workflow.graph.plans[index], workflow.steps[index]
    assert step is not None
    over = step.finished is not None and step.finished <= known
    state = _STATES[step.state] if over else "RUNNING" if _running(step, known) else "PENDING"
    path = f"{workflow.name}.{plan.path}"
    started = step.pod.started if step.pod is not None and step.pod.started is not None else step.started
    name = path.rpartition(".")[2] if plan.role not in {EXECUTOR, JOIN} else plan.task or "root"
    pods = [{"pod_name": pod.name} for pod in step.pods]
    return _set(
        run_id=row.id,
        task_id=_task_id(path),
        display_name=name,
        create_time=stamp(step.started),
        start_time=stamp(min(started, known)),
        end_time=stamp(step.finished) if over and step.finished is not None else NEVER,
        state=state,
        state_history=[{"update_time": stamp(known), "state": state}],
        child_tasks=pods or _children(workflow, index, known),
        parent_task_id=_task_id(f"{workflow.name}.{plan.path.rpartition('.')[0]}".rstrip(".")),
    )


def _children(workflow: Workflow, index: int, known: float) -> list[Document]:
    """The pods directly inside a nested pipeline's node."""
    driver = workflow.graph.plans[index].parent
    return [
        {"pod_name": pod.name}
        for plan, step in zip(workflow.graph.plans, workflow.steps, strict=True)
        if step is not None and plan.parent == driver and step.started <= known
        for pod in step.pods
    ]


def _running(step: Step, known: float) -> bool:
    return step.pod is not None and step.pod.started is not None and step.pod.started <= known


def _task_id(path: str) -> str:
    """Argo's node id: stable, and unique within the workflow."""
    return f"{path.partition('.')[0]}-{fnv1a(path)}" if "." in path else path
