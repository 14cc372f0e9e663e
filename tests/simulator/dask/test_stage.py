"""Stages: tasks on workers, with closed forms."""

import math

import pytest

from harness.simulator.dask.operator import desired
from harness.simulator.dask.stage import Stage
from harness.simulator.engine.events import EventLoop


def over_after(tasks: int, width: int, task_s: float = 2.0) -> float:
    loop, ends = EventLoop(), []
    stage = Stage(loop, [task_s] * tasks, lambda: ends.append(loop.now))
    for worker in range(width):
        stage.offer(worker)
    loop.run(1e6)
    (end,) = ends
    return end


@pytest.mark.parametrize(("tasks", "width"), [(1, 1), (4, 1), (4, 3), (6, 3), (2, 5)])
def test_equal_tasks_take_as_many_rounds_as_the_workers_need(tasks, width):
    assert over_after(tasks, width) == pytest.approx(math.ceil(tasks / width) * 2.0)


def test_a_task_whose_worker_leaves_begins_anew_on_another_one():
    loop, ends = EventLoop(), []
    stage = Stage(loop, [10.0, 4.0], lambda: ends.append(loop.now))
    stage.offer("first")
    stage.offer("second")
    loop.after(6.0, stage.lose, "first")
    loop.after(6.0, stage.offer, "second")
    loop.run(100.0)
    assert ends == [16.0]
    assert stage.left == 0


def test_a_stage_without_workers_waits_and_a_stopped_one_ends_nothing():
    loop, ends = EventLoop(), []
    stage = Stage(loop, [1.0], lambda: ends.append(loop.now))
    loop.run(10.0)
    assert ends == []
    stage.offer("late")
    stage.stop()
    loop.run(20.0)
    stage.offer("later")
    loop.run(30.0)
    assert ends == []


@pytest.mark.parametrize(
    ("tasks", "replicas", "bounds", "wanted"),
    [
        (0, 0, (3, 3), 3),  # its minimum, without work
        (9, 0, (1, 5), 5),
        (2, 0, (1, 5), 2),
        (0, 8, (0, 8), 6),  # a quarter less at most
        (0, 1, (0, 8), 0),  # but one
        (9, 2, (0, 8), 8),
    ],
)
def test_an_autoscaler_asks_for_a_worker_per_task_within_its_bounds(tasks, replicas, bounds, wanted):
    assert desired(tasks, replicas, bounds) == wanted
