"""Task details of a few runs: why some failed and whether tasks came from a cache, at one request a run."""

from collections import deque

from harness.collectors.collector import Observation
from harness.model.errors import TargetUnreachableError
from harness.model.http import Exchange
from harness.model.phases import CACHED, FAILED, SUCCEEDED, TASK
from harness.model.records import Event, Span
from harness.targets.target import DescribesTasks, ListedRun, TaskDetail

_MOST_FAILED = 20
_MOST_OTHERS = 10
_QUIET = frozenset({SUCCEEDED, "RUNNING", "PENDING", ""})  # nothing to be told of these


class RunDetails:
    """Chooses the runs to ask for, and records their tasks.

    Failed runs come first. Of each kind those are asked for that ended while there was room, which is the first ones;
    `read` makes one request, and whoever calls it decides what can be afforded.
    """

    def __init__(self, observation: Observation, exchange: Exchange) -> None:
        self._observation = observation
        self._target = observation.target if isinstance(observation.target, DescribesTasks) else None
        self._exchange = exchange
        self._failed: deque[str] = deque()
        self._others: deque[str] = deque()
        self.read_so_far = 0
        self._room = {True: _MOST_FAILED, False: _MOST_OTHERS}

    def offer(self, run: ListedRun) -> None:
        """A run is over: it may be one to ask for."""
        failed = run.state == FAILED
        if self._target is not None and self._room[failed] > 0:
            self._room[failed] -= 1
            (self._failed if failed else self._others).append(run.id)

    @property
    def wanted(self) -> int:
        """Runs that have not been asked for yet."""
        return len(self._failed) + len(self._others)

    def read(self) -> None:
        """Ask for one run and record its tasks.

        A run without an answer is not asked for again: the next one may be understood.
        """
        assert self._target is not None
        self.read_so_far += 1
        run = (self._failed or self._others).popleft()
        try:
            tasks = self._target.read_tasks(self._exchange, run)
        except TargetUnreachableError as error:
            self._observation.journal.note("NotReachable", f"tasks of run {run}", error.message)
            return
        for task in tasks:
            self._write(run, task)

    def _write(self, run: str, task: TaskDetail) -> None:
        journal, source = self._observation.journal, self._observation.plan.target
        started_at = task.started_at or journal.now()
        journal.write(
            Span(run, task.id, TASK, started_at, task.ended_at, task=task.name, source=source, resolution_s=1.0)
        )
        if task.cached or task.state not in _QUIET:
            reason, severity = (CACHED, "Normal") if task.cached else (task.state, "Warning")
            at = task.ended_at or started_at
            journal.write(Event(at, "Task", task.name, reason, task.error, source, run, type=severity))
