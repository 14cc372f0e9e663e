"""Executions by a synchronous service: how long each phase took, and on which replica."""

from dataclasses import dataclass

import numpy as np

from harness.analysis.timeline import Floats, Ints, Timeline, floats, remembered
from harness.model.phases import COMPUTING, LOADING, QUEUED, SENDING


@dataclass(frozen=True, slots=True, eq=False)
class Executions:
    """One entry per execution whose answer reported its phases; seconds as measured by the service, shape (n,).

    Attributes:
        row: of `Timeline.runs`.
        queued: waiting in the runtime for a worker.
        loading: reading from adapters, the worker's work for other executions meanwhile included.
        computing: operators at work.
        sending: writing to adapters.
        replica: index into `replicas`; -1 where the answer did not name it.
        replicas: names, from a header of the answer.
    """

    row: Ints
    queued: Floats
    loading: Floats
    computing: Floats
    sending: Floats
    replica: Ints
    replicas: tuple[str, ...]

    @property
    def inside(self) -> Floats:
        """Seconds in the runtime, all phases together."""
        return self.queued + self.loading + self.computing + self.sending

    def by_replica(self, seconds: Floats, least: int) -> dict[str, Floats]:
        """The values by replica, of replicas with at least `least` executions."""
        groups = ((name, seconds[self.replica == k]) for k, name in enumerate(self.replicas))
        return {name: values for name, values in groups if values.size >= least}


@remembered
def executions(timeline: Timeline) -> Executions:
    """The executions of the ledger's runs; empty where runs are made of pods."""
    pods = timeline.pods
    row, count = pods["row"].to_numpy(), len(timeline.runs)

    def seconds(name: str) -> Floats:
        mine = timeline.of_runs(name) & np.isfinite(floats(pods, "end_s"))
        length = floats(pods, "end_s")[mine] - floats(pods, "start_s")[mine]
        return np.bincount(row[mine], weights=length, minlength=count).astype(np.float64)

    computed = timeline.of_runs(COMPUTING)
    rows = np.unique(row[computed]).astype(np.int64)
    names = tuple(sorted({str(name) for name in pods["node"][computed].unique() if name}))
    place = {name: k for k, name in enumerate(names)}
    of_run = np.full(count, -1, dtype=np.int64)
    of_run[row[computed]] = [place.get(str(name), -1) for name in pods["node"][computed]]
    queued, loading, computing, sending = (seconds(name)[rows] for name in (QUEUED, LOADING, COMPUTING, SENDING))
    return Executions(rows, queued, loading, computing, sending, of_run[rows], names)
