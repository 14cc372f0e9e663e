"""The tasks of simulated runs beside those of real ones, whose pipelines have steps of other names in the same order."""

from typing import Any
from uuid import UUID

import pytest

from harness.model.argo.nodes import node_id
from harness.simulator.engine.calendar import Calendar
from harness.simulator.engine.distributions import fixed
from harness.simulator.kfp.records import Run
from harness.simulator.kfp.view import task_details
from harness.simulator.platform import Platform
from harness.simulator.profile import Step
from harness.targets.kfp.task_nodes import task_nodes
from tests.support.platforms import ONE_SECOND, TRAINING, profile, submit, upload
from tests.support.recorded_runs import recorded_run

STEPS = ("prepare", "train", "evaluate")
Tasks = list[dict[str, Any]]


def tasks_of(run: Run) -> Tasks:
    return task_details(run, Calendar(0).stamp, wrapped=True)


def named(tasks: Tasks) -> dict[str, tuple[str, frozenset[str]]]:
    """By the full name of its node within the workflow: a task's state, and the ids of what follows it, as names."""
    workflow, names = task_nodes(tasks)
    assert len(names) == len(tasks)
    own = {name: name.removeprefix(workflow) for name in names.values()}
    ids = {node_id(name, workflow): short for name, short in own.items()}
    after = [frozenset(ids[each["pod_name"]] for each in task.get("child_tasks", ())) for task in tasks]
    return {own[names[k]]: (task.get("state", ""), after[k]) for k, task in enumerate(tasks)}


def renamed(tasks: Tasks, steps: tuple[str, ...]) -> dict[str, tuple[str, frozenset[str]]]:
    def ours(name: str) -> str:
        for theirs, own in sorted(zip(steps, STEPS, strict=True), reverse=True):  # the longest name first
            name = name.replace(f".{theirs}", f".<{own}>")
        return name.replace("<", "").replace(">", "")

    return {ours(name): (state, frozenset(map(ours, then))) for name, (state, then) in named(tasks).items()}


@pytest.mark.parametrize(
    ("recording", "steps", "failing", "runs"),
    [
        ("three", ("make", "train", "evaluate"), 0.0, 1),
        ("cached", ("make", "train", "evaluate"), 0.0, 2),
        ("fails", ("step", "step-2", "step-3"), 1.0, 1),
    ],
)
def test_tasks_are_named_stated_and_linked_as_in_a_real_run(
    recording: str, steps: tuple[str, ...], failing: float, runs: int
) -> None:
    models = (Step("train", duration=fixed(1.0), output=fixed(0.0), failing=failing), ONE_SECOND)
    platform = Platform(profile(steps=models))
    version = upload(platform, TRAINING)
    for _ in range(runs):
        (run,) = submit(platform, version)
        platform.loop.run(platform.loop.now + 100)
    real = recorded_run(recording).body["run_details"]["task_details"]
    assert named(tasks_of(run)) == renamed(real, steps)


def test_ids_are_uuids_in_the_order_of_the_list_and_stay() -> None:
    platform = Platform(profile())
    run, other = submit(platform, upload(platform), 2)
    platform.loop.run(1.5)
    before = {task["task_id"] for task in tasks_of(run)}
    platform.loop.run(100)
    ids = [task["task_id"] for task in tasks_of(run)]
    assert before < set(ids)
    assert ids == sorted(ids)
    assert {UUID(each).version for each in ids} == {4}
    assert not set(ids) & {task["task_id"] for task in tasks_of(other)}


def test_a_task_shows_what_the_last_report_knew_of_it() -> None:
    platform = Platform(profile())
    (run,) = submit(platform, upload(platform))
    assert tasks_of(run) == [], "nothing was reported"
    platform.loop.run(0.5)
    by_name = {task["display_name"]: task for task in tasks_of(run)}
    step = by_name["executor(0)"]
    assert (step["end_time"], step["state"], "child_tasks" in step) == ("0001-01-01T00:00:00Z", "RUNNING", False)
    assert by_name["root(0)"]["state"] == "RUNNING"
    assert "train" not in by_name
    platform.loop.run(100)
    histories = {tuple(each["state"] for each in task["state_history"]) for task in tasks_of(run)}
    assert ("RUNNING", "SUCCEEDED") in histories
    assert all(history[-1] == "SUCCEEDED" for history in histories)
