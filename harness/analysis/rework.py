"""Work that was lost and done again: pods that failed, were evicted, or went with their node."""

from dataclasses import dataclass

import numpy as np

from harness.analysis.failures import BAD_ENDS
from harness.analysis.timeline import Bools, Ints, Timeline, distinct, floats
from harness.model.phases import POD_PHASES, RUNNING

_ENDED_EARLY = BAD_ENDS | {"Preempted", "Preempting", "TaintManagerEviction", "NodeShutdown", "Terminated"}
_SOON_S = 60.0  # a pod that ends so shortly around its node's end ended with it


@dataclass(frozen=True, slots=True)
class Rework:
    """Of the runs' pods.

    Attributes:
        pods: that were lost.
        lost_s: seconds that they had worked.
        worked_s: seconds that all pods worked.
    """

    pods: int
    lost_s: float
    worked_s: float

    @property
    def amplification(self) -> float:
        """How many times the work was done that would have sufficed."""
        useful = self.worked_s - self.lost_s
        return self.worked_s / useful if useful > 0 else np.inf


def rework(timeline: Timeline) -> Rework | None:
    """Fold the pods that did not end well; none when no pod worked."""
    pods = timeline.pods
    working = _working(timeline)
    if not working.any():
        return None
    length = np.nan_to_num(floats(pods, "end_s"), nan=timeline.end_s) - floats(pods, "start_s")
    lost = working & _ended_early(timeline)
    lost[lost_with_node(timeline)] = True
    return Rework(distinct(pods["pod"].to_numpy()[lost]), float(length[lost].sum()), float(length[working].sum()))


def lost_with_node(timeline: Timeline) -> Ints:
    """Rows of `Timeline.pods` whose running stretch ended with their node."""
    homes = timeline.pods["node"].cat
    gone = timeline.nodes.set_index("name")["gone_s"].reindex(homes.categories)
    if not gone.notna().any():
        return np.zeros(0, dtype=np.int64)
    gone_s = np.append(gone.to_numpy(dtype=np.float64, na_value=np.nan), np.nan)[homes.codes.to_numpy()]
    end = floats(timeline.pods, "end_s")
    with_it = (end >= gone_s - _SOON_S) & (_ended_early(timeline) | (end >= gone_s)) | np.isnan(end)
    return np.flatnonzero(_working(timeline) & np.isfinite(gone_s) & with_it)


def _working(timeline: Timeline) -> Bools:
    pods = timeline.pods
    return np.asarray((pods["phase"] == POD_PHASES.index(RUNNING)) & (pods["row"] >= 0), dtype=bool)


def _ended_early(timeline: Timeline) -> Bools:
    """By row of `pods`: something was said of the pod's end."""
    events = timeline.events[(timeline.events["kind"] == "Pod") & timeline.events["reason"].isin(_ENDED_EARLY)]
    if not len(events):
        return np.zeros(len(timeline.pods), dtype=bool)
    number = timeline.pods_called(events["object"])["pod"].unique()
    return np.isin(timeline.pods["pod"].to_numpy(), number)
