"""Which workflows' nodes are read, and when: decisions without I/O.

A workflow's status is tens of kilobytes and is sent again with every change, so it is never watched. Read are the first
workflows that failed, then ever fewer of the later ones; and now and then a running one. Argo writes into the waiting
node why its pod could not be created, and nowhere else: so first those that have never had a pod, the oldest first,
again and again while they wait. Of the others, one without a living pod may only be between two.
"""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass

_ALL_FAILED = 20  # of the failed ones; of later ones each whose number is a power of two
_MOST_WAITING = 200  # failed ones in the queue
_EVERY_S, _LONGEST_S, _DOUBLED_AFTER = 5.0, 300.0, 6  # between two readings of running ones
_IDLE_S = 10.0  # a workflow that has just begun has no pod yet


@dataclass(frozen=True, slots=True)
class WorkflowKey:
    """One workflow and the run that it carries out."""

    namespace: str
    name: str
    run: str


@dataclass(slots=True)
class _Running:
    since_s: float
    read_s: float = float("-inf")


class WorkflowChoice:
    """Chooses the next workflow to read. Times are monotonic seconds.

    Args:
        now_s: the begin of the observation.
    """

    def __init__(self, now_s: float) -> None:
        self._failed: list[WorkflowKey] = []
        self._running: dict[WorkflowKey, _Running] = {}
        self._failures = 0
        self._sampled = 0
        self._sampled_s = now_s

    def see(self, key: WorkflowKey, now_s: float, *, over: bool, failed: bool) -> None:
        """Take in a workflow's state."""
        if not over:
            self._running.setdefault(key, _Running(now_s))
            return
        self._running.pop(key, None)
        if failed and key not in self._failed and len(self._failed) < _MOST_WAITING:
            self._failed.append(key)

    def forget(self, namespace: str, name: str) -> None:
        """A workflow was deleted."""
        for key in [each for each in self._running if (each.namespace, each.name) == (namespace, name)]:
            del self._running[key]

    def take(
        self,
        now_s: float,
        own: AbstractSet[str] | None,
        working: AbstractSet[str],
        worked: AbstractSet[str] = frozenset(),
    ) -> WorkflowKey | None:
        """The workflow to read now; none if there is none.

        Args:
            now_s: the present.
            own: the test's runs; none where they are not known, then every run is taken for one.
            working: runs that have a living pod.
            worked: runs that have or had one.
        """
        for key in self._failed:
            if own is None or key.run in own:
                self._failed.remove(key)
                self._failures += 1
                return key if _is_chosen(self._failures) else self.take(now_s, own, working, worked)
        if now_s - self._sampled_s < min(_LONGEST_S, _EVERY_S * 2 ** (self._sampled // _DOUBLED_AFTER)):
            return None
        return self._sample(now_s, own, working, worked)

    def _sample(
        self, now_s: float, own: AbstractSet[str] | None, working: AbstractSet[str], worked: AbstractSet[str]
    ) -> WorkflowKey | None:
        waiting = [
            (key.run in working, key.run in worked, seen.read_s, seen.since_s, key.name, key)
            for key, seen in self._running.items()
            if (own is None or key.run in own) and now_s - seen.since_s >= _IDLE_S
        ]
        if not waiting:
            return None
        chosen = min(waiting)[-1]
        self._running[chosen].read_s = now_s
        self._sampled += 1
        self._sampled_s = now_s
        return chosen


def _is_chosen(number: int) -> bool:
    return number <= _ALL_FAILED or number & (number - 1) == 0
