"""How many workflows may run: in all (``parallelism``) and in each namespace (``namespaceParallelism``).

Source: https://argo-workflows.readthedocs.io/en/latest/parallelism/; the message is that of Argo 4.0.8 for both limits.
"""

from collections import Counter
from collections.abc import Callable
from heapq import heappop, heappush

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
