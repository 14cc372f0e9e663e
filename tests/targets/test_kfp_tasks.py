"""Task details whose entries name what follows them by the ids of Argo's nodes."""

from typing import Any

import pytest

from harness.model.argo.nodes import node_id
from harness.targets.kfp.task_nodes import tasks_of

RUN = {"run_id": "r", "state": "SUCCEEDED"}
NEVER = "1970-01-01T00:00:00Z"


def entry(name: str, state: str = "SUCCEEDED", *children: str, **more: Any) -> dict[str, Any]:
    """An entry that these nodes of the workflow ``wf`` follow."""
    times = {
        "create_time": "2026-11-21T10:00:01Z",
        "start_time": "2026-11-21T10:00:02Z",
        "end_time": "2026-11-21T10:00:09Z",
    }
    refs = [{"pod_name": node_id(f"wf.{child}", "wf")} for child in children]
    return {"run_id": "r", "task_id": name, "display_name": name, "state": state, "child_tasks": refs, **times, **more}


def details(*entries: dict[str, Any]) -> dict[str, Any]:
    return {**RUN, "run_details": {"task_details": list(entries)}}


def test_an_executor_has_the_name_of_its_task_and_groups_are_left_out() -> None:
    tasks = tasks_of(
        details(
            entry("wf", "FAILED", "root-driver", "root"),
            entry("root-driver"),
            entry("root", "FAILED", "root.train-driver", "root.train"),
            entry("train-driver"),
            entry("train", "FAILED", "root.train.executor"),
            entry("executor", "FAILED", error={"code": 13, "message": "no space left on device"}),
        )
    )
    assert [(task.name, task.state) for task in tasks if not task.name.endswith("-driver")] == [("train", "FAILED")]
    train = next(task for task in tasks if task.name == "train")
    assert train.error == "no space left on device"
    assert (train.ended_at or 0) - train.started_at == 7 * 10**9
    assert not any(task.cached for task in tasks)


@pytest.mark.parametrize("nested", [True, False])
def test_an_executor_that_was_skipped_after_its_driver_was_cached(nested: bool) -> None:
    executor = (
        [entry("train", "SUCCEEDED", "train.executor"), entry("executor", "SKIPPED")]
        if nested
        else [entry("train", "SKIPPED")]
    )
    tasks = tasks_of(details(entry("wf", "SUCCEEDED", "train-driver", "train"), entry("train-driver"), *executor))
    assert {task.name: task.cached for task in tasks} == {"train-driver": False, "train": True}


def test_a_condition_that_does_not_hold_is_not_cached() -> None:
    tasks = tasks_of(
        details(
            entry("wf", "SUCCEEDED", "condition-1-driver", "condition-1"),
            entry("condition-1-driver"),
            entry("condition-1", "SKIPPED"),
        )
    )
    assert not any(task.cached for task in tasks)


def test_future_events_have_no_time_and_a_run_without_details_has_no_tasks() -> None:
    root = entry("wf", "RUNNING", "train-driver")
    (task,) = tasks_of(details(root, entry("train-driver", "PENDING", start_time=NEVER, end_time=NEVER)))
    assert task.ended_at is None
    assert task.started_at > 0
    assert tasks_of(RUN) == ()
