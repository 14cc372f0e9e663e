"""The keys by which runs, experiments, pipelines and their versions can be sorted and filtered."""

from collections.abc import Callable
from typing import Any

from harness.simulator.engine.calendar import Calendar
from harness.simulator.kfp.listing import Table
from harness.simulator.kfp.records import Experiment, Pipeline, Run, Version

Keys = dict[str, Callable[[Any], str | int]]


def runs(calendar: Calendar) -> Table[Run]:
    """The keys of runs. With a single user nothing has a namespace."""
    second = calendar.second
    more: Keys = {
        "finished_at": lambda run: 0 if run.finished is None else second(run.finished),
        "scheduled_at": lambda run: second(run.created),
        "storage_state": lambda run: run.storage_state,
        "state": lambda run: run.state,
        "status": lambda run: run.state,
        "namespace": lambda run: run.namespace,
        "experiment_id": lambda run: run.experiment_id,
        "recurring_run_id": lambda _: "",
    }
    return Table("Run", {**_named("run", calendar), **more}, lambda run: run.id)


def experiments(calendar: Calendar) -> Table[Experiment]:
    """The keys of experiments."""
    more: Keys = {
        "namespace": lambda row: row.namespace,
        "storage_state": lambda row: row.storage_state,
        "last_run_created_at": lambda row: 0 if row.last_run is None else calendar.second(row.last_run),
    }
    return Table("Experiment", {**_named("experiment", calendar), **more}, lambda row: row.id)


def pipelines(calendar: Calendar) -> Table[Pipeline]:
    """The keys of pipelines."""
    more: Keys = {"namespace": lambda row: row.namespace}
    return Table("Pipeline", {**_named("pipeline", calendar), **more}, lambda row: row.id)


def versions(calendar: Calendar) -> Table[Version]:
    """The keys of pipeline versions."""
    return Table("PipelineVersion", _named("pipeline_version", calendar), lambda row: row.id)


def _named(kind: str, calendar: Calendar) -> Keys:
    """The common keys; id and name can each be spelled in two ways."""
    return {
        f"{kind}_id": lambda row: row.id,
        "id": lambda row: row.id,
        "display_name": lambda row: row.name,
        "name": lambda row: row.name,
        "created_at": lambda row: calendar.second(row.created),
        "description": lambda row: row.description,
    }


def recurring_runs() -> Table[object]:
    """The keys of recurring runs, which do not exist here."""
    names = ("id", "recurring_run_id", "name", "display_name", "created_at", "updated_at", "description")
    return Table("Job", dict.fromkeys(names, lambda _: ""), lambda _: "")
