"""Replicas of a runtime: what the detectors of their load and speed have in common."""

from harness.analysis.waits.drain_tail import DrainTail, drain_tail
from harness.detectors.detector import Timeline

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
