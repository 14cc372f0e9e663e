"""The workflow controller's queue and its workers, and how many workflows may run.

The queue is client-go's delaying queue with one entry per workflow. Running workflows are limited in all
(``parallelism``) and in each namespace (``namespaceParallelism``).
Source: https://argo-workflows.readthedocs.io/en/latest/parallelism/; the message is that of Argo 4.0.8 for both limits.
"""

from collections import Counter, deque
from collections.abc import Callable
from heapq import heappop, heappush

from harness.model.live.exposition import Histogram
from harness.simulator.engine.events import EventLoop
from harness.simulator.engine.queues import ProcessorSharing
from harness.simulator.profile import Controller as Settings
from harness.simulator.workflows.workflow import Workflow

# Buckets of the controller's histograms, in seconds, as Argo 4.0.8 has them.
_WAITS_S = (1.0, 5.0, 20.0, 60.0, 180.0)
_WORK_S = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0, 180.0)


class WorkQueue:
    """Hands workflows to workers, which call `reconcile`; a workflow is with one worker at a time.

    A change requeues its workflow after `requeue_s`. An entry that is due earlier stays, so what happens between two
    reconciliations waits for the rest of `requeue_s` since the first: each workflow has a grid of its own.

    Attributes:
        adds: entries so far.
        waits: seconds that entries waited for a worker.
        work: seconds that a worker spent on one.
    """

    def __init__(self, loop: EventLoop, settings: Settings, reconcile: Callable[[Workflow], None]) -> None:
        self._loop = loop
        self._reconcile = reconcile  # ends with `done`
        self._operation_s = settings.operation_s
        self._cpu = ProcessorSharing(loop, settings.cpu) if settings.cpu else None
        self._ready: deque[tuple[Workflow, float]] = deque()  # with the time of their entry
        self._begun: dict[Workflow, float] = {}  # of those with a worker
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
        now, due = self._loop.now, self._loop.now + self.requeue_s
        if not now < workflow.look_at <= due:
            workflow.look_at = due

    def done(self, workflow: Workflow) -> None:
        """End the reconciliation of a workflow, which frees its worker."""
        workflow.busy = False
        self.busy -= 1
        self.work.observe(self._loop.now - self._begun.pop(workflow))
        if workflow.again:
            workflow.again = False
            self._ready.append((workflow, self._loop.now))
        if self._ready:
            self._work()

    def _push(self, workflow: Workflow) -> None:
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


POSTPONED = "Workflow processing has been postponed because too many workflows are already running"
Key = tuple[str, str]  # namespace and name of a workflow


class Throttler:
    """Workflows beyond a limit wait by priority, then by age. One that is let in keeps its place until it is removed.

    Args:
        most: running workflows; 0 is no limit.
        most_of_each: running workflows of a namespace; 0 is no limit.
    """

    def __init__(self, most: int = 0, most_of_each: int = 0) -> None:
        self.most = most
        self.most_of_each = most_of_each
        self._running: set[Key] = set()
        self._by_namespace = Counter[str]()
        self._waiting: dict[Key, Callable[[], None]] = {}  # what to call when one is let in
        self._queues: dict[str, list[tuple[int, float, int, Key]]] = {}  # by namespace; the first one is next
        self._count = 0

    @property
    def waiting(self) -> int:
        """Number of workflows that wait."""
        return len(self._waiting)

    def admit(self, key: Key, start: Callable[[], None], *, priority: int = 0, created: float = 0.0) -> bool:
        """Whether a workflow may run; otherwise it waits, and `start` is called when it may."""
        if key in self._running:
            return True
        if key not in self._waiting:
            self._waiting[key] = start
            self._count += 1
            heappush(self._queues.setdefault(key[0], []), (-priority, created, self._count, key))
        self._let_in(key)
        return key in self._running

    def remove(self, key: Key) -> None:
        """A workflow ended or was deleted; the next one may start."""
        self._waiting.pop(key, None)
        if key in self._running:
            self._running.remove(key)
            self._by_namespace[key[0]] -= 1
            self._let_in()

    def limit_to(self, most: int, most_of_each: int) -> None:
        """Change the limits. What runs goes on."""
        self.most, self.most_of_each = most, most_of_each
        self._let_in()

    def _let_in(self, asking: Key | None = None) -> None:
        """Let in as many as there is room for; the one that asks learns it from the answer."""
        while not self.most or len(self._running) < self.most:
            heads = [queue[0] for queue in map(self._live, [*self._queues]) if queue]
            if not heads:
                return
            key = heappop(self._queues[min(heads)[3][0]])[3]
            start = self._waiting.pop(key)
            self._running.add(key)
            self._by_namespace[key[0]] += 1
            if key != asking:
                start()

    def _live(self, namespace: str) -> list[tuple[int, float, int, Key]]:
        """The queue of a namespace without those that left; empty while the namespace has no room."""
        queue = self._queues[namespace]
        while queue and queue[0][3] not in self._waiting:
            heappop(queue)
        if not queue:
            del self._queues[namespace]
        full = bool(self.most_of_each) and self._by_namespace[namespace] >= self.most_of_each
        return [] if full else queue
