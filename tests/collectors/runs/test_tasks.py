"""Which runs' tasks are read, and what is recorded of them."""

import threading
from pathlib import Path

import pytest

from harness.collectors.runs.tasks import TaskQueue, record_tasks
from harness.model import Event, Span, TargetUnreachableError
from harness.model.http import Exchange, HttpAnswer, HttpRequest
from harness.model.phases import CACHED, FAILED, SUCCEEDED, TASK
from harness.targets.target import ListedRun, TaskDetail
from tests.support import run_listing
from tests.support.run_listing import T0, Platform


class Detailed(Platform):
    """A platform that also lists a run's tasks."""

    def __init__(self) -> None:
        super().__init__(page_size=200)
        self.asked: list[str] = []

    def read_tasks(self, exchange: Exchange, run: str) -> tuple[TaskDetail, ...]:
        exchange(HttpRequest("GET", f"/runs/{run}"))
        self.asked.append(run)
        if run == "unreadable":
            raise TargetUnreachableError("not found")
        end = T0 + 9 * 10**9
        return (
            TaskDetail("d", "train-driver", SUCCEEDED, T0, T0),
            TaskDetail("t", "train", "SKIPPED", T0, end, cached=True),
            TaskDetail("e", "evaluate", FAILED, T0, end, "out of memory"),
        )


class Scene(run_listing.Scene):
    """A scene with a platform that lists tasks."""

    platform: Detailed

    def __init__(self, path: Path) -> None:
        super().__init__(path, Detailed(), intended=0)
        self.queue = TaskQueue()

    def read(self) -> None:
        """Read the tasks of the next run in the queue."""
        record_tasks(self.observation, self.platform, lambda _: HttpAnswer(200, b"{}"), self.queue.take())


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def over(name: str, state: str) -> ListedRun:
    return ListedRun(name, name, state, T0, T0)


def test_failed_runs_come_first_and_only_a_few_are_read(scene: Scene) -> None:
    for k in range(100):
        scene.queue.offer(over(f"good{k}", SUCCEEDED))
        scene.queue.offer(over(f"bad{k}", FAILED))
    assert len(scene.queue) == 30
    while scene.queue:
        scene.read()
    assert scene.platform.asked == [*(f"bad{k}" for k in range(20)), *(f"good{k}" for k in range(10))]


def test_tasks_are_recorded_with_why_they_failed_and_what_came_from_the_cache(scene: Scene) -> None:
    scene.queue.offer(over("r", FAILED))
    scene.read()
    spans = scene.folder.records(Span)
    assert [(span.task, span.phase) for span in spans] == [("train-driver", TASK), ("train", TASK), ("evaluate", TASK)]
    events = [(e.kind, e.object, e.reason, e.message, e.run) for e in scene.folder.records(Event)]
    assert events == [("Task", "train", CACHED, "", "r"), ("Task", "evaluate", FAILED, "out of memory", "r")]


def test_an_unreadable_run_does_not_block_the_next_one(scene: Scene) -> None:
    scene.queue.offer(over("unreadable", FAILED))
    scene.queue.offer(over("r", FAILED))
    scene.read()
    scene.read()
    assert scene.platform.asked == ["unreadable", "r"]
    assert [e.reason for e in scene.folder.records(Event)] == ["NotReachable", CACHED, FAILED]


def test_a_small_test_reads_one_run_at_its_end_a_failed_one_if_possible(scene: Scene) -> None:
    for k in range(9):
        scene.platform.put(f"r{k}", FAILED if k == 5 else SUCCEEDED, k, k + 1)
    stop = threading.Event()
    stop.set()
    scene.runs.collect(stop)
    assert scene.platform.asked == ["r5"]


def test_a_large_test_reads_as_many_runs_as_are_affordable(scene: Scene) -> None:
    for k in range(600):
        scene.platform.put(f"r{k}", FAILED, k, k + 1)
    for _ in range(14):
        scene.poll()
    assert len(scene.platform.asked) == 7  # a quarter of 5 % of 600
