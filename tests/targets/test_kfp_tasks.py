"""Task details whose entries refer to each other by their own ids, as KFP's API definition also allows."""

from typing import Any

import pytest

from harness.targets.kfp.tasks import tasks_of

RUN = {"run_id": "r", "state": "SUCCEEDED"}
NEVER = "1970-01-01T00:00:00Z"


def entry(task: str, name: str, state: str = "SUCCEEDED", *children: str, **more: Any) -> dict[str, Any]:
    times = {
        "create_time": "2026-11-21T10:00:01Z",
        "start_time": "2026-11-21T10:00:02Z",
        "end_time": "2026-11-21T10:00:09Z",
    }
    refs = [{"pod_name": child} for child in children]
    return {"run_id": "r", "task_id": task, "display_name": name, "state": state, "child_tasks": refs, **times, **more}


def details(*entries: dict[str, Any]) -> dict[str, Any]:
    return {**RUN, "run_details": {"task_details": list(entries)}}


def test_an_executor_has_the_name_of_its_task_and_groups_are_left_out() -> None:
    tasks = tasks_of(
        details(
            entry("wf", "training-x7k2p", "FAILED", "wf-0", "wf-1"),
            entry("wf-0", "root-driver"),
            entry("wf-1", "root", "FAILED", "wf-2", "wf-3"),
            entry("wf-2", "train-driver"),
            entry("wf-3", "train", "FAILED", "wf-4"),
            entry("wf-4", "executor(0)", "FAILED", error={"code": 13, "message": "no space left on device"}),
        )
    )
    assert [(task.name, task.state) for task in tasks if not task.name.endswith("-driver")] == [
        ("root", "FAILED"),
        ("train", "FAILED"),
    ]
    train = next(task for task in tasks if task.name == "train")
    assert train.error == "no space left on device"
    assert (train.ended_at or 0) - train.started_at == 7 * 10**9
    assert not any(task.cached for task in tasks)


@pytest.mark.parametrize("nested", [True, False])
def test_an_executor_that_was_skipped_after_its_driver_was_cached(nested: bool) -> None:
    executor = (
        [entry("n", "train", "SUCCEEDED", "e"), entry("e", "executor", "SKIPPED")]
        if nested
        else [entry("n", "train", "SKIPPED")]
    )
    tasks = tasks_of(details(entry("wf", "wf", "SUCCEEDED", "d", "n"), entry("d", "train-driver"), *executor))
    assert {task.name: task.cached for task in tasks} == {"train-driver": False, "train": True}


def test_a_condition_that_does_not_hold_is_not_cached() -> None:
    tasks = tasks_of(
        details(
            entry("wf", "wf", "SUCCEEDED", "d", "c"),
            entry("d", "condition-1-driver"),
            entry("c", "condition-1", "SKIPPED"),
        )
    )
    assert not any(task.cached for task in tasks)


def test_future_events_have_no_time_and_a_run_without_details_has_no_tasks() -> None:
    root = entry("wf", "wf", "RUNNING", "d")
    (task,) = tasks_of(details(root, entry("d", "train-driver", "PENDING", start_time=NEVER, end_time=NEVER)))
    assert task.ended_at is None
    assert task.started_at > 0
    assert tasks_of(RUN) == ()
