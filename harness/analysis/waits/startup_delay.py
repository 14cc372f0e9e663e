"""Delays by the controller: the wait for a run's first pod, the gaps between pods, and runs active at once."""

from dataclasses import dataclass

import numpy as np

from harness.analysis.timeline import Floats, Timeline, active, beginnings, floats, remembered
from harness.analysis.waits.waits import waits_so_far
from harness.model.phases import CONTROLLER

_PLATEAU = 0.7


@dataclass(frozen=True, slots=True, eq=False)
class StartupDelay:
    """Delays of the runs that had pods, unfinished ones included; arrays have one entry per run.

    Attributes:
        before: seconds from the answer to the first pod.
        between: seconds between pods, without any pod.
        most: the typical number of runs active at once while others waited for their first pod.
        plateau: share of that time in which exactly that many were active.
        queued_s: seconds in which at least one run waited for its first pod.
        unhindered_s: median wait for the first pod of the first `most` runs.
        late_s: median wait for the first pod of the others; 0 without others.
        queue: share of the runs' time that they waited for their first pod longer than the first ones.
    """

    before: Floats
    between: Floats
    most: int
    plateau: float
    queued_s: float
    unhindered_s: float
    late_s: float = 0.0
    queue: float = 0.0

    @property
    def capped(self) -> bool:
        """Whether a limit on active runs held the later ones back.

        If all runs wait equally long, none does: the first ones would not have had to wait.
        """
        between = float(np.median(self.between)) if self.between.size else 0.0
        return self.most > 0 and self.plateau >= _PLATEAU and self.late_s >= max(3 * self.unhindered_s, 3.0, between)


@remembered
def startup_delay(timeline: Timeline) -> StartupDelay:
    """Combine the first pods with the waits for the controller."""
    split = waits_so_far(timeline)
    row = timeline.pods["row"].to_numpy()
    new_run = beginnings(row)  # pods of a run are adjacent
    first = np.full(len(timeline.runs) + 1, np.inf)  # one more for pods of no run
    if new_run.size:
        first[row[new_run]] = np.minimum.reduceat(floats(timeline.pods, "start_s"), new_run)
    first, over = (
        first[split.row],
        np.where(timeline.is_open, timeline.end_s, floats(timeline.runs, "over_s"))[split.row],
    )
    answered = floats(timeline.runs, "answered_s")[split.row]
    seen = np.isfinite(first) & np.isfinite(answered)
    before = (first - answered)[seen]
    between = split.of(CONTROLLER)[seen] - before
    first, over, answered = first[seen], over[seen], answered[seen]
    at = np.sort(np.concatenate((first, over)))
    if at.size < 2:
        return StartupDelay(before, between, int(at.size > 0), 0.0, 0.0, 0.0)
    length = np.diff(at)
    working = active(first, np.maximum(over, first), at[:-1])
    waiting = active(answered, np.maximum(first, answered), at[:-1]) > 0
    queued = float(length[waiting].sum())
    most = _typical(working[waiting], length[waiting]) if queued else int(working.max(initial=0))
    # One run less for an instant: one has just ended and the next has not started.
    at_most = float(length[waiting & (working <= most) & (working >= most - 1)].sum())
    in_order = before[np.argsort(first, kind="stable")]
    unhindered, late = (float(np.median(each)) if each.size else 0.0 for each in (in_order[:most], in_order[most:]))
    queue = float(np.maximum(before - unhindered, 0.0).sum()) / max(float(split.total.sum()), 1e-9)
    plateau = at_most / queued if queued else 0.0
    return StartupDelay(before, between, most, plateau, queued, unhindered, late, queue)


def _typical(values: Floats, weights: Floats) -> int:
    """The median, each value counted with its weight."""
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weights[order])
    return int(values[order][np.searchsorted(total, total[-1] / 2)])
