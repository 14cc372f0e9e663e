"""Replicas of a runtime: what the detectors of their load and speed have in common."""

from dataclasses import dataclass

import numpy as np

from harness.analysis.timeline import Timeline, active, floats
from harness.model.phases import COMPUTING, POD_PHASES, QUEUED

_WINDOWS = 400  # instants at which the executions at work are counted
_LEVEL = 0.9  # quantile of the number computing at once
_WAITING = 0.5  # share of the time: with less, the workers were not loaded enough


@dataclass(frozen=True, slots=True)
class DrainTail:
    """The end of a burst, when some workers still have executions and others are idle, inferred from times alone.

    A worker computes one execution at a time, so the number computing at once is the number of workers with work. It is
    level while all of them have work, and with a good balancer falls within about one execution's time at the end.

    Attributes:
        level: executions that computed at once while all workers had work.
        tail_s: from when the number fell below half of `level` for good, to the end.
        over_s: from the first computing to the end of the last.
        computing_s: the 95th percentile of one execution's computing.
    """

    level: float
    tail_s: float
    over_s: float
    computing_s: float


def drain_tail(timeline: Timeline, replica: str = "") -> DrainTail | None:
    """Of all workers, or of those of one replica that answers named.

    None when executions did not queue most of the time, or nothing was computed.
    """
    pods = timeline.pods
    here = (pods["node"] == replica).to_numpy(dtype=bool) | (not replica)
    phase, start, end = pods["phase"].to_numpy(), floats(pods, "start_s"), floats(pods, "end_s")
    whole = here & (pods["row"] >= 0).to_numpy(dtype=bool) & np.isfinite(start) & np.isfinite(end) & (end > start)
    computes, waits = (whole & (phase == POD_PHASES.index(name)) for name in (COMPUTING, QUEUED))
    if not computes.any():
        return None
    first, last = float(start[computes].min()), float(end[computes].max())
    at = np.linspace(first, last, _WINDOWS)
    busy, waiting = active(start[computes], end[computes], at), active(start[waits], end[waits], at)
    if float((waiting > 0).mean()) < _WAITING:
        return None
    level = float(np.quantile(busy, _LEVEL))
    from_s = float(at[np.flatnonzero(busy >= level / 2)[-1]])
    lengths = (end - start)[computes]
    return DrainTail(level, last - from_s, last - first, float(np.quantile(lengths, 0.95)))


LEAST_EXECUTIONS = 10  # to judge a replica
UNNAMED = "no response names the replica that did the work (header X-Worker, X-Pod-Name or X-Upstream-Addr)"
LEAST_RUNS = 50  # where replicas are not named
_LONG_TAIL = 6.0  # times one execution's compute time (p95), which the last executions may take anyway
_TAIL_SHARE = 0.1  # of the whole time


def unnamed_tail(timeline: Timeline, replica: str = "") -> DrainTail | None:
    """How the work of a burst ran out, of all or at one replica; none when too little is known to infer anything."""
    return drain_tail(timeline, replica) if len(timeline.runs) >= LEAST_RUNS else None


def uneven(tail: DrainTail) -> bool:
    """Whether some workers still had executions queued when most had none."""
    return tail.tail_s >= _LONG_TAIL * tail.computing_s and tail.tail_s / max(tail.over_s, 1e-9) >= _TAIL_SHARE
