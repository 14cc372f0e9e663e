"""Tasks of the runs that a real KFP 2.17 reported, and the pods that worked for them."""

import random
from collections import Counter

import pytest

from harness.collectors.kubernetes.pod.life import task_of
from harness.targets.kfp.task_nodes import tasks_of
from tests.support.recorded_runs import RECORDED, recorded_run

# By run: its tasks in order of start, as "task STATE"; "task cached" when nothing was executed, "task -" when it never
# began because something before it failed. The first one is always the driver of the pipeline itself.
TASKS = {
    "three": "make-driver SUCCEEDED, make SUCCEEDED, train-driver SUCCEEDED, train SUCCEEDED, "
    "evaluate-driver SUCCEEDED, evaluate SUCCEEDED",
    "cached": "make-driver SUCCEEDED, make cached, train-driver SUCCEEDED, evaluate-driver SUCCEEDED, train cached, "
    "evaluate cached",
    "nested": "inner-driver SUCCEEDED, step-driver SUCCEEDED, step SUCCEEDED, step-2-driver SUCCEEDED, step-2 cached, "
    "iteration-driver SUCCEEDED, iteration-item-driver SUCCEEDED, iteration-item-driver SUCCEEDED, "
    "step-driver SUCCEEDED, step-driver SUCCEEDED, iteration-item-driver SUCCEEDED, step cached, step SUCCEEDED, "
    "step-driver SUCCEEDED, step cached",
    "ifelse_false": "condition-branches-1-driver SUCCEEDED, condition-2-driver SUCCEEDED, "
    "condition-3-driver SUCCEEDED, step-2-driver SUCCEEDED, step-2 SUCCEEDED",
    "exit": "exit-handler-1-driver SUCCEEDED, step-2-driver SUCCEEDED, step-2 SUCCEEDED, step-driver SUCCEEDED, "
    "step SUCCEEDED",
    "exit_fails": "exit-handler-1-driver SUCCEEDED, step-2-driver SUCCEEDED, step-2 FAILED, step-driver SUCCEEDED, "
    "step cached",
    "fails": "step-driver SUCCEEDED, step SUCCEEDED, step-2-driver SUCCEEDED, step-2 FAILED, step-3 -, step-3-driver -",
    "retries": "step-driver SUCCEEDED, step FAILED",
    "oom": "step-driver SUCCEEDED, step FAILED",
    "evicted": "step-driver SUCCEEDED, step FAILED",
    "node_gone": "step-driver SUCCEEDED, step FAILED, step RUNNING",
    "bad_image": "badimg-driver SUCCEEDED, badimg PENDING",
    "unschedulable": "step-driver SUCCEEDED, step PENDING",
    "quota": "step-driver SUCCEEDED, step SUCCEEDED",
    "resources": "step-driver SUCCEEDED, step SUCCEEDED",
    "terminated": "step-driver SUCCEEDED, step FAILED",
    "terminated_early": "step-driver FAILED, step -",
}
of_each = pytest.mark.parametrize("name", RECORDED)


def tasks(name):
    return tasks_of(recorded_run(name).body)


def test_every_recorded_run_is_in_the_table():
    assert set(TASKS) == set(RECORDED)


@of_each
def test_each_attempt_at_a_task_is_read_once_with_its_state(name):
    read = [f"{task.name} {'cached' if task.cached else task.state or '-'}" for task in tasks(name)]
    assert read == ["root-driver SUCCEEDED", *TASKS[name].split(", ")]


@of_each
def test_the_order_of_the_entries_does_not_matter(name):
    body = recorded_run(name).body
    random.Random(7).shuffle(body["run_details"]["task_details"])
    assert tasks_of(body) == tasks(name)


@of_each
def test_tasks_and_pods_have_the_same_names(name):
    recorded = recorded_run(name)
    of_pods = Counter(task_of(recorded.pod(pod)) for pod in recorded.pods)
    executed = [task for task in tasks(name) if task.state and not task.cached]
    if name == "terminated_early":  # before the pod was created
        executed = [task for task in executed if task.name != "step-driver"]
    assert Counter(task.name for task in executed) == of_pods


@of_each
def test_only_what_runs_has_no_end(name):
    for task in tasks(name):
        assert (task.ended_at is None) == (task.state in {"PENDING", "RUNNING"})
        assert task.started_at <= (task.ended_at or task.started_at)


def test_loop_iterations_that_came_from_the_cache_are_told_from_the_executed_one():
    entries = {each["task_id"]: each for each in recorded_run("nested").body["run_details"]["task_details"]}
    steps = [(entries[task.id]["display_name"], task.cached) for task in tasks("nested") if task.name == "step"]
    assert sorted(steps) == [("executor", True), ("executor", True), ("executor(0)", False), ("executor(0)", False)]


def test_attempts_of_equal_names_are_assigned_by_what_follows_them():
    body = recorded_run("three").body
    by_task = {task.name: task for task in tasks_of(body)}
    seconds = {name: (task.started_at // 10**9 % 3600, task.ended_at // 10**9 % 3600) for name, task in by_task.items()}
    assert {name: seconds[name] for name in ("make", "train", "evaluate")} == {
        "make": (42 * 60 + 44, 42 * 60 + 57), "train": (43 * 60 + 14, 43 * 60 + 21),
        "evaluate": (43 * 60 + 34, 43 * 60 + 43),
    }  # fmt: skip
