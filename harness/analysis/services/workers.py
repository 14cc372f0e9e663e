"""Load balance of a service's replicas, and how long some were idle while others still had work."""

from dataclasses import dataclass

import numpy as np

from harness.analysis.services.executions import executions
from harness.analysis.timeline import Floats, Timeline, floats, merged
from harness.model.phases import COMPUTING, LOADING, SENDING

WORKING = (LOADING, COMPUTING, SENDING)


@dataclass(frozen=True, slots=True)
class Worker:
    """The work of one replica.

    Attributes:
        name: from its answers.
        executions: number of executions.
        busy_s: seconds with at least one active execution.
        computing_s: seconds of its executions' own computing.
        last_s: end of its last execution, seconds after t0.
    """

    name: str
    executions: int
    busy_s: float
    computing_s: float
    last_s: float


@dataclass(frozen=True, slots=True)
class Workers:
    """All replicas named in answers.

    Attributes:
        workers: by name.
        gini: Gini coefficient of computing time: 0 when even, up to 1 - 1/n when one replica did everything.
        tail_s: from the last end of the first replica to finish to that of the last.
        over_s: from the first start to the last end.
        waiting: share of the executions' time in the runtime spent waiting for a worker.
        io: share spent loading and sending data.
        computing: share spent computing.
    """

    workers: tuple[Worker, ...]
    gini: float
    tail_s: float
    over_s: float
    waiting: float
    io: float
    computing: float


def workers(timeline: Timeline) -> Workers | None:
    """Sum up executions by replica; none when no answer named its replica."""
    done = executions(timeline)
    if not done.replicas:
        return None
    pods = timeline.pods
    mine = timeline.of_runs(*WORKING)
    home = pods["node"].astype("str").to_numpy(dtype=object)[mine]
    # Open intervals count up to the end of the observation.
    start, end = floats(pods, "start_s")[mine], np.nan_to_num(floats(pods, "end_s")[mine], nan=timeline.end_s)
    found = []
    for k, name in enumerate(done.replicas):
        here, at = home == name, done.replica == k
        low, high = merged(start[here], np.maximum(start, end)[here])
        computing = float(done.computing[at].sum())
        found.append(Worker(name, int(at.sum()), float((high - low).sum()), computing, float(end[here].max())))
    last = [worker.last_s for worker in found]
    whole = float(done.inside.sum()) or 1.0
    return Workers(
        workers=tuple(found),
        gini=gini(np.array([worker.computing_s for worker in found])),
        tail_s=max(last) - min(last),
        over_s=max(last) - float(start.min()),
        waiting=float(done.queued.sum()) / whole,
        io=float((done.loading + done.sending).sum()) / whole,
        computing=float(done.computing.sum()) / whole,
    )


def gini(work: Floats) -> float:
    """Gini coefficient: 0 when even, up to 1 - 1/n when one has everything (Gini 1912, by ranks)."""
    ranked = np.sort(work)
    total = float(ranked.sum())
    if not total:
        return 0.0
    place = np.arange(1, ranked.size + 1)
    return float(2 * (place * ranked).sum() / (ranked.size * total) - (ranked.size + 1) / ranked.size)
