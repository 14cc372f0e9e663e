"""What executions would have taken with quicker loads or more workers: their service, replayed.

Arrivals, computing times and replicas are as observed. How long loading takes without interruption is not: reports
include what the worker does for others meanwhile. It is taken as the same for all executions, and such that they take
as long in the replay as they took, in the mean.

A worker does one thing at a time. Loading and computing block its loop; sending does not, but its end is noticed only
when the loop is free. What becomes ready meanwhile waits for its turn, first come first served: loading for the next
execution may come before computing for this one. The workers of a replica share one listening socket: a new execution
goes to any worker that is free. While all are blocked, executions queue, and the first worker that becomes free accepts
all of them, as gunicorn's workers do.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from heapq import heappop, heappush
from random import Random

import numpy as np

from harness.analysis.services.contention import contention
from harness.analysis.services.executions import Executions, executions
from harness.analysis.services.saturation import saturation, unhindered
from harness.analysis.services.service_replicas import service_replicas
from harness.analysis.timeline import Floats, Ints, Timeline, floats
from harness.analysis.timeline.memory import remembered
from harness.analysis.waits.waits import waits
from harness.model.phases import COMPUTING, LOADING, QUEUED


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


_FEWEST, _MOST = 10, 20_000  # executions: more take seconds to replay
_FEWEST_FOR_ONE_SEED = 4_000  # fewer executions are replayed twice: free workers are chosen at random
_STEPS = 9  # of the bisection: to 0.2 % of the observed loads
_REPRODUCED = 0.1  # of the mean duration: where more is missing, the service is another one
_TIMES_REPLICAS = 4  # times the replicas
_AT_ONCE_S = 1e-3  # an adapter's answer: the end of sending, too, waits until the loop is free


@dataclass(frozen=True, slots=True)
class Replay:
    """What would have been saved; shares of the runs' time.

    Attributes:
        load_s: loading without interruption, seconds.
        without_loads: with adapters that answer at once.
        more_workers: with four times the replicas, on cores of their own.
    """

    load_s: float
    without_loads: float
    more_workers: float


@remembered
def replay(timeline: Timeline) -> Replay | None:
    """Of the executions that reported their phases.

    Returns:
        None where Kubernetes does not show the workers, executions are too few or too many, or the replay can't
        reproduce how long they took.
    """
    done, shown = executions(timeline), service_replicas(timeline)
    if not _FEWEST <= done.row.size <= _MOST or not shown.each:
        return None
    seeds = (1, 2) if done.row.size < _FEWEST_FOR_ONE_SEED else (1,)

    def mean(work: Work) -> float:
        return float(np.mean([durations(work, shown.each, seed) for seed in seeds]))

    def with_loads(taking: Callable[[float], Work], seconds: float) -> float:
        return mean(taking(seconds))

    work, observed = _work(timeline, done, len(shown.pods)), float(done.inside.mean())
    if not np.isfinite(work.came).all():
        return None
    inside = float(done.inside.sum()) / max(float(waits(timeline).total.sum()), 1e-9)
    # How long the quickest sends took is no measure where all of them waited for the loop: they take as long as loads,
    # if that explains what was observed.
    for taking in (partial(_loading_and_sending, work), partial(_loading, work)):
        load_s = _solved(partial(with_loads, taking), observed, float(done.loading.mean()))
        now = mean(taking(load_s))
        if now > 0 and abs(now - observed) <= _REPRODUCED * observed:
            others = _loading_and_sending(work, _AT_ONCE_S), _spread(taking(load_s), timeline)
            return Replay(load_s, *(max(0.0, inside * (1 - mean(other) / now)) for other in others))
    return None


def _work(timeline: Timeline, done: Executions, replicas: int) -> Work:
    """What was observed; where replicas are not named, they take turns, or one of them does everything."""
    stretches = timeline.pods[timeline.of_runs(QUEUED, LOADING, COMPUTING)]
    came = np.full(len(timeline.runs), np.inf)
    np.minimum.at(came, stretches["row"].to_numpy(), floats(stretches, "start_s"))
    number = done.row.size
    turns = np.zeros(number, dtype=np.int64) if saturation(timeline).in_one else np.arange(number) % replicas
    sending = min(float(done.sending.sum()), unhindered(done.sending)) / number
    replica = done.replica if len(done.replicas) > 1 else turns
    return Work(came[done.row], np.zeros(number), done.computing, np.full(number, sending), replica)


def _loading(work: Work, seconds: float) -> Work:
    return replace(work, loading=np.full(work.came.size, seconds))


def _loading_and_sending(work: Work, seconds: float) -> Work:
    return replace(_loading(work, seconds), sending=np.minimum(work.sending, seconds))


def _spread(work: Work, timeline: Timeline) -> Work:
    """Over several times the replicas, each execution on one of those that replace its own; they take turns there."""
    shared, turn = contention(timeline), np.zeros(work.came.size, dtype=np.int64)
    order = np.lexsort((work.came, work.replica))
    turn[order] = np.arange(order.size) - np.searchsorted(work.replica[order], work.replica[order])
    computing = work.computing * (1 - shared.lost) if shared.likely else work.computing
    return replace(work, computing=computing, replica=work.replica * _TIMES_REPLICAS + turn % _TIMES_REPLICAS)


def _solved(increasing: Callable[[float], float], value: float, most: float) -> float:
    """Where between 0 and `most` a function takes a value, or comes closest to it."""
    least = 0.0
    for _ in range(_STEPS):
        middle = (least + most) / 2
        least, most = (middle, most) if increasing(middle) < value else (least, middle)
    return (least + most) / 2
