"""How long executions take at a service whose workers are event loops, given what each execution needs.

A worker does one thing at a time. Loading and computing block its loop; sending does not, but its end is noticed only
when the loop is free. What becomes ready meanwhile waits for its turn, first come first served: loading for the next
execution may come before computing for this one. The workers of a replica share one listening socket: a new execution
goes to any worker that is free. While all are blocked, executions queue, and the first worker that becomes free accepts
all of them, as gunicorn's workers do.
"""

from collections import deque
from dataclasses import dataclass
from heapq import heappop, heappush
from random import Random

import numpy as np

from harness.analysis.timeline import Floats, Ints


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """What executions need; seconds, shape (n,).

    Attributes:
        came: instants of arrival, in any order.
        loading: without interruption.
        computing: without interruption.
        sending: without interruption.
        replica: which serves it.
    """

    came: Floats
    loading: Floats
    computing: Floats
    sending: Floats
    replica: Ints


def durations(work: Work, workers: int, seed: int = 0) -> Floats:
    """Seconds from each execution's arrival to its end, shape (n,).

    Args:
        work: of the executions.
        workers: of each replica, at least 1.
        seed: of the choice among free workers.
    """
    over = np.empty(work.came.size)
    random = Random(seed)
    needs = list(zip(work.loading.tolist(), work.computing.tolist(), work.sending.tolist(), strict=True))
    for replica in np.unique(work.replica):
        here = np.flatnonzero(work.replica == replica)
        order = here[np.argsort(work.came[here], kind="stable")]
        over[order] = _Replica(workers, [needs[row] for row in order.tolist()], random).serve(work.came[order].tolist())
    return over - work.came


_LOAD, _COMPUTE, _SEND, _ACCEPT, _FINISH = range(5)


class _Replica:
    """Workers that share a listening socket; executions are numbered in the order in which they come."""

    def __init__(self, workers: int, needs: list[tuple[float, float, float]], random: Random) -> None:
        self._random = random
        self._needs = needs  # by execution: seconds of loading, computing, sending
        self._over = [0.0] * len(needs)
        self._ready: list[deque[tuple[int, int]]] = [deque() for _ in range(workers)]  # by worker: phase, execution
        self._free = list(range(workers))
        self._queued: list[int] = []
        self._ahead: list[tuple[float, int, int, int]] = []  # end, execution, phase, worker

    def serve(self, came: list[float]) -> list[float]:
        """The instants at which the executions end."""
        for execution, at in enumerate(came):
            self._until(at)
            if self._free:
                worker = self._free.pop(self._random.randrange(len(self._free)))
                self._ready[worker].append((_ACCEPT, execution))
                self._next(worker, at)
            else:
                self._queued.append(execution)
        self._until(np.inf)
        return self._over

    def _until(self, end: float) -> None:
        while self._ahead and self._ahead[0][0] <= end:
            at, execution, phase, worker = heappop(self._ahead)
            ready = self._ready[worker]
            if phase == _SEND:
                ready.append((_FINISH, execution))
                if worker in self._free:
                    self._free.remove(worker)
                    self._next(worker, at)
                continue
            if phase == _LOAD:
                ready.append((_COMPUTE, execution))
            elif self._needs[execution][_SEND]:
                heappush(self._ahead, (at + self._needs[execution][_SEND], execution, _SEND, worker))
            else:
                self._over[execution] = at
            ready.extend((_ACCEPT, each) for each in self._queued)
            self._queued.clear()
            self._next(worker, at)

    def _next(self, worker: int, at: float) -> None:
        """Let a worker that is not blocked go on with what is ready."""
        ready = self._ready[worker]
        while ready:
            phase, execution = ready.popleft()
            if phase == _ACCEPT:
                ready.append((_LOAD, execution))
            elif phase == _FINISH:
                self._over[execution] = at
            else:
                heappush(self._ahead, (at + self._needs[execution][phase], execution, phase, worker))
                return
        self._free.append(worker)
