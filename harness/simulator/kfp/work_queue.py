"""The workflow controller's queue: client-go's delaying queue with one entry per workflow, and its workers."""

from collections import deque
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from harness.model.exposition import Histogram
from harness.simulator.engine.events import EventLoop
from harness.simulator.engine.queues import ProcessorSharing
from harness.simulator.profile import Controller as Settings

# Buckets of the controller's histograms, in seconds, as Argo 4.0.8 has them.
_WAITS_S = (1.0, 5.0, 20.0, 60.0, 180.0)
_WORK_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0, 180.0)


class Queued(Protocol):
    """What the queue notes on a workflow."""

    started: float | None
    queued: bool  # a reconciliation is scheduled, or waits for a worker
    busy: bool  # a worker reconciles it
    again: bool  # its next reconciliation came due while it was busy
    look_at: float  # when the latest requeue is due; in the past if there is none


W = TypeVar("W", bound=Queued)


class WorkQueue(Generic[W]):
    """Hands workflows to workers, which call `reconcile`; a workflow is with one worker at a time.

    A change requeues its workflow after `requeue_s`. An entry that is due earlier stays, so what happens between two
    reconciliations waits for the rest of `requeue_s` since the first: each workflow has a grid of its own.

    Attributes:
        adds: entries so far.
        waits: seconds that entries waited for a worker.
        work: seconds that a worker spent on one.
    """

    def __init__(self, loop: EventLoop, settings: Settings, reconcile: Callable[[W], None]) -> None:
        self._loop = loop
        self._reconcile = reconcile  # ends with `done`
        self._operation_s = settings.operation_s
        self._cpu = ProcessorSharing(loop, settings.cpu) if settings.cpu else None
        self._ready: deque[tuple[W, float]] = deque()  # with the time of their entry
        self._begun: dict[W, float] = {}  # of those with a worker
        self.workers = settings.workers
        self.requeue_s = settings.requeue_s
        self.busy = 0
        self.adds = 0
        self.waits = Histogram(_WAITS_S)
        self.work = Histogram(_WORK_S)

    @property
    def depth(self) -> int:
        """Number of workflows that wait for a worker."""
        return len(self._ready)

    def add(self, workflow: W) -> None:
        """Queue a workflow without delay."""
        workflow.queued = True
        self._push(workflow)

    def requeue(self, workflow: W) -> None:
        """Queue a workflow that has changed when its next entry is due."""
        if not workflow.queued:
            self.expect(workflow)
            workflow.queued = True
            self._loop.at(workflow.look_at, self._push, workflow)

    def expect(self, workflow: W) -> None:
        """Add an entry that leads to a reconciliation only if the workflow changes until then."""
        now, due = self._loop.now, self._loop.now + self.requeue_s
        if not now < workflow.look_at <= due:
            workflow.look_at = due

    def done(self, workflow: W) -> None:
        """End the reconciliation of a workflow, which frees its worker."""
        workflow.busy = False
        self.busy -= 1
        self.work.observe(self._loop.now - self._begun.pop(workflow))
        if workflow.again:
            workflow.again = False
            self._ready.append((workflow, self._loop.now))
        if self._ready:
            self._work()

    def _push(self, workflow: W) -> None:
        self.adds += 1
        if workflow.busy:
            workflow.again = True
        else:
            self._ready.append((workflow, self._loop.now))
            self._work()

    def _work(self) -> None:
        ready = self._ready
        while ready and self.busy < self.workers:
            workflow, since = ready.popleft()
            if workflow.busy:  # queued twice: by hand, and by a requeue
                workflow.again = True
                continue
            now = self._loop.now
            self.waits.observe(now - since)
            self._begun[workflow] = now
            self.busy += 1
            workflow.busy, workflow.queued = True, False
            if self._cpu is None:
                self._loop.after(self._operation_s, self._reconcile, workflow)
            else:
                self._cpu.add(self._operation_s, 1.0, self._reconcile, workflow)
