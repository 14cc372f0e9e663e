"""The persistence agent: reports the state of workflows to the API server, with a delay."""

from collections import deque
from collections.abc import Callable

from harness.simulator.engine.events import EventLoop
from harness.simulator.kfp.records import CANCELING, FAILED, PENDING, RUNNING, SUCCEEDED, UNSTATED, Run
from harness.simulator.kfp.server import Server
from harness.simulator.profile import Agent as Settings
from harness.simulator.workflows import workflow as phases
from harness.simulator.workflows.workflow import Workflow

_STATES = {
    phases.UNSEEN: UNSTATED,
    phases.PENDING: PENDING,
    phases.RUNNING: RUNNING,
    phases.SUCCEEDED: SUCCEEDED,
    phases.FAILED: FAILED,
}


class Agent:
    """A few workers with one report at a time each. A workflow that changes while its report waits is reported once.

    The report of an end takes tokens from the API server's own bucket, so runs that end slow down runs that start.
    """

    def __init__(
        self,
        loop: EventLoop,
        settings: Settings,
        server: Server,
        tokens_per_report: int,
        over: Callable[[Run], None] = lambda _: None,
    ) -> None:
        self._loop = loop
        self.settings = settings
        self.lag_s = settings.lag_s
        self.reports = 0
        self._server = server
        self._tokens = tokens_per_report
        self._over = over  # called when the API server has recorded a run's end
        self._queue: deque[Workflow] = deque()
        self._waiting = 0
        self._busy = 0

    @property
    def backlog(self) -> int:
        """Number of workflows with unreported changes."""
        return self._waiting

    def changed(self, workflow: Workflow) -> None:
        """Schedule the report of a workflow that the controller has changed."""
        if not workflow.unreported:
            workflow.unreported = True
            self._waiting += 1
            self._loop.after(self.lag_s, self._push, workflow)

    def _push(self, workflow: Workflow) -> None:
        self._queue.append(workflow)
        if self._busy < self.settings.workers:
            self._work()

    def _work(self) -> None:
        queue, settings, known_at = self._queue, self.settings, self._loop.now
        while queue and self._busy < settings.workers:
            self._busy += 1
            workflow = queue.popleft()
            workflow.unreported = False
            self._waiting -= 1
            begun_at = known_at
            if workflow.finished is not None:
                begun_at = self._server.bucket.take(known_at, self._tokens)
            self._loop.at(begun_at + settings.report_s, self._reported, workflow, workflow.phase, known_at)

    def _reported(self, workflow: Workflow, phase: str, known_at: float) -> None:
        self._busy -= 1
        self.reports += 1
        run = self._server.runs.get(workflow.run_id)
        if run is not None and run.workflow is workflow:
            self._record(run, workflow, phase, known_at)
        if self._queue:
            self._work()

    def _record(self, run: Run, workflow: Workflow, phase: str, known_at: float) -> None:
        now = self._loop.now
        run.reports.append(known_at)
        run.changes += 1
        canceling = run.state == CANCELING and phase not in {phases.SUCCEEDED, phases.FAILED}
        run.enter(CANCELING if canceling else _STATES[phase], now)
        if phase in {phases.SUCCEEDED, phases.FAILED}:
            run.finished = workflow.finished
            if not workflow.kept:
                workflow.kept = True
                self._over(run)
