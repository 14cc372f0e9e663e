"""The workflow controller's queue: client-go's delaying queue with one entry per workflow, and its workers."""

from collections import deque
from collections.abc import Callable

from harness.simulator.engine.events import EventLoop
from harness.simulator.engine.queues import ProcessorSharing
from harness.simulator.kfp.workflow import Workflow
from harness.simulator.profile import Controller as Settings


class WorkQueue:
    """Hands workflows to workers; a workflow is with one worker at a time.

    A change requeues its workflow after `requeue_s`. An entry that is due earlier stays, so what happens between two
    reconciliations waits for the rest of `requeue_s` since the first: each workflow has a grid of its own.
    """

    def __init__(self, loop: EventLoop, settings: Settings, reconcile: Callable[[Workflow], None]) -> None:
        self._loop = loop
        self._reconcile = reconcile  # called when a worker has looked at a workflow; ends with `done`
        self._operation_s = settings.operation_s
        self._cpu = ProcessorSharing(loop, settings.cpu) if settings.cpu else None
        self._ready: deque[Workflow] = deque()
        self.workers = settings.workers
        self.requeue_s = settings.requeue_s
        self.busy = 0

    @property
    def depth(self) -> int:
        """Number of workflows that wait for a worker."""
        return len(self._ready)

    @property
    def unstarted(self) -> int:
        """Number of workflows that wait for a worker for the first time."""
        return sum(1 for each in self._ready if each.started is None)

    def add(self, workflow: Workflow) -> None:
        """Queue a workflow without delay."""
        workflow.queued = True
        self._push(workflow)

    def requeue(self, workflow: Workflow) -> None:
        """Queue a workflow that has changed when its next entry is due."""
        if not workflow.queued:
            self.expect(workflow)
            workflow.queued = True
            self._loop.at(workflow.look_at, self._push, workflow)

    def expect(self, workflow: Workflow) -> None:
        """Add an entry that leads to a reconciliation only if the workflow changes until then."""
        now = self._loop.now
        due = now + self.requeue_s
        workflow.look_at = min(workflow.look_at, due) if workflow.look_at > now else due

    def done(self, workflow: Workflow) -> None:
        """End the reconciliation of a workflow, which frees its worker."""
        workflow.busy = False
        self.busy -= 1
        if workflow.again:
            workflow.again = False
            self._ready.append(workflow)
        if self._ready:
            self._work()

    def _push(self, workflow: Workflow) -> None:
        if workflow.busy:
            workflow.again = True
        else:
            self._ready.append(workflow)
            self._work()

    def _work(self) -> None:
        while self._ready and self.busy < self.workers:
            workflow = self._ready.popleft()
            if workflow.busy:  # queued twice: by hand, and by a requeue
                workflow.again = True
                continue
            self.busy += 1
            workflow.busy, workflow.queued = True, False
            if self._cpu is None:
                self._loop.after(self._operation_s, self._reconcile, workflow)
            else:
                self._cpu.add(self._operation_s, 1.0, self._reconcile, workflow)
