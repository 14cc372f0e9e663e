"""Tasks of a few runs, at one request per run: why some failed, and whether tasks came from a cache."""

from collections import deque

from harness.collectors.collector import Observation
from harness.model import Event, Span, TargetUnreachableError
from harness.model.http import Exchange
from harness.model.phases import CACHED, FAILED, NOT_REACHABLE, SUCCEEDED, TASK
from harness.targets.target import DescribesTasks, ListedRun, TaskDetail

_MAX_FAILED, _MAX_OTHERS = 20, 10
_UNREMARKABLE = frozenset({SUCCEEDED, "RUNNING", "PENDING", ""})  # states without an event


class TaskQueue:
    """Chooses the runs whose tasks are read: the first to end, of failed and of other runs, failed ones first.

    Attributes:
        taken: how many were taken so far.
    """

    def __init__(self) -> None:
        self._failed: deque[str] = deque()
        self._others: deque[str] = deque()
        self._vacancies = {True: _MAX_FAILED, False: _MAX_OTHERS}
        self.taken = 0

    def offer(self, run: ListedRun) -> None:
        """A run has ended; it is queued if there is a vacancy for its kind."""
        failed = run.state == FAILED
        if self._vacancies[failed] > 0:
            self._vacancies[failed] -= 1
            (self._failed if failed else self._others).append(run.id)

    def take(self) -> str:
        """The next run. It is not queued again, even if reading its tasks fails: the next one may be readable."""
        self.taken += 1
        return (self._failed or self._others).popleft()

    def __len__(self) -> int:
        return len(self._failed) + len(self._others)


def record_tasks(observation: Observation, target: DescribesTasks, exchange: Exchange, run: str) -> None:
    """Read and record the tasks of one run, or why they can't be read."""
    try:
        tasks = target.read_tasks(exchange, run)
    except TargetUnreachableError as error:
        observation.journal.note(NOT_REACHABLE, f"tasks of run {run}", error.message)
        return
    for task in tasks:
        record_task(observation, run, task)


def record_task(observation: Observation, run: str, task: TaskDetail) -> None:
    """Record one task of a run: when it was executed, and how it ended if that is remarkable."""
    journal, source = observation.journal, observation.plan.target
    started_at = task.started_at or journal.now()
    journal.write(Span(run, task.id, TASK, started_at, task.ended_at, task=task.name, source=source, resolution_s=1.0))
    if task.cached or task.state not in _UNREMARKABLE:
        reason, severity = (CACHED, "Normal") if task.cached else (task.state, "Warning")
        at = task.ended_at or started_at
        journal.write(Event(at, "Task", task.name, reason, task.error, source, run, type=severity))
