"""The end of a burst, when some workers have executions left and others have none, told from times alone.

A worker computes one execution at a time, so that as many compute at once as there are workers with work. While all of
them have some, that number is level; with a good balancer it falls within about one execution at the end.
"""

from dataclasses import dataclass

import numpy as np

from harness.analysis.timeline import Timeline, floats
from harness.analysis.timeline.curves import active
from harness.model.phases import COMPUTING, POD_PHASES, QUEUED

_WINDOWS = 400
_LEVEL = 0.9  # quantile of the number that compute at once, which is its level
_WAITING = 0.5  # of the time: else the workers were not loaded enough to tell


@dataclass(frozen=True, slots=True)
class DrainTail:
    """How the work of a burst ran out.

    Attributes:
        level: executions that computed at once while all workers had work.
        tail_s: from when fewer than half of that did, for good, to the end.
        over_s: from the first computing to the end of the last.
        computing_s: the 95th percentile of one execution's computing.
    """

    level: float
    tail_s: float
    over_s: float
    computing_s: float


def drain_tail(timeline: Timeline) -> DrainTail | None:
    """None when executions did not wait most of the time, or nothing was computed: then nothing can be inferred."""
    pods = timeline.pods
    phase, start, end = pods["phase"].to_numpy(), floats(pods, "start_s"), floats(pods, "end_s")
    whole = (pods["row"] >= 0).to_numpy(dtype=bool) & np.isfinite(start) & np.isfinite(end) & (end > start)
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
