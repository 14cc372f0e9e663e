"""What executions would have taken with quicker loads or more workers: their service, replayed.

Arrivals, computing times and replicas are as observed. How long loading takes without interruption is not: reports
include what the worker does for others meanwhile. It is taken as the same for all executions, and such that they take
as long in the replay as they took, in the mean.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from harness.analysis.services.contention import contention
from harness.analysis.services.event_loops import Work, durations
from harness.analysis.services.executions import Executions, executions
from harness.analysis.services.saturation import saturation, unhindered
from harness.analysis.services.service_replicas import service_replicas
from harness.analysis.timeline import Timeline, floats
from harness.analysis.timeline.memory import remembered
from harness.analysis.waits.waits import waits
from harness.model.phases import COMPUTING, LOADING, QUEUED

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
