"""Rows of the API server as JSON of its REST gateway.

Names are snake_case, unset fields are left out, timestamps are whole seconds, and future ones are in 1970.
"""

from collections.abc import Callable
from typing import Any

from harness.simulator.kfp.records import Experiment, Pipeline, Run, Version
from harness.simulator.kfp.task_details import task_details

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
