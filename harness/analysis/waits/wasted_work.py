"""Lost work: pods that failed, were evicted, or were lost with their node."""

from dataclasses import dataclass

import numpy as np

from harness.analysis.timeline import Bools, Ints, Timeline, distinct, floats, remembered
from harness.analysis.waits.failures import BAD_ENDS
from harness.model.phases import RUNNING, SERVING, SUCCEEDED

_TAKEN = frozenset(
    {
        "Evicted", "Preempted", "Preempting", "TaintManagerEviction", "NodeShutdown", "Terminated",
        # Of the condition DisruptionTarget.
        "DeletionByPodGC", "DeletionByTaintManager", "EvictionByEvictionAPI", "PreemptionByScheduler",
        "TerminationByKubelet",
    }
)  # fmt: skip
_SOON_S = 60.0  # a pod that ends this close to its node's end ended with it


@dataclass(frozen=True, slots=True)
class WastedWork:
    """Lost work of the runs' pods.

    Attributes:
        pods: number of pods lost.
        lost_s: seconds that they had run.
        worked_s: seconds that all pods ran.
    """

    pods: int
    lost_s: float
    worked_s: float

    @property
    def amplification(self) -> float:
        """Work done as a multiple of the useful work."""
        useful = self.worked_s - self.lost_s
        return self.worked_s / useful if useful > 0 else np.inf


@remembered
def wasted_work(timeline: Timeline) -> WastedWork | None:
    """Sum up lost pods; none when no pod ran."""
    working = timeline.of_runs(RUNNING, SERVING)
    if not working.any():
        return None
    pod, length = timeline.pods["pod"].to_numpy()[working], timeline.seconds_of(working)
    lost = np.isin(pod, np.concatenate(lost_pods(timeline)))
    return WastedWork(distinct(pod[lost]), float(length[lost].sum()), float(length.sum()))


@remembered
def lost_pods(timeline: Timeline) -> tuple[Ints, Ints]:
    """Positions in `Timeline.names` of pods that failed, and of pods that were evicted or lost with their node."""
    with_node = timeline.pods["pod"].to_numpy()[lost_with_node(timeline)]
    taken = np.union1d(_pods_with(timeline, _TAKEN), with_node)
    return np.setdiff1d(_pods_with(timeline, BAD_ENDS), taken), taken


def lost_with_node(timeline: Timeline) -> Ints:
    """Rows of `Timeline.pods` whose running interval ended with their node.

    A pod may well end at that time and succeed: nothing reports a bad end, its run succeeded, and no other pod of the
    task came after it.
    """
    homes = timeline.pods["node"].cat
    gone = timeline.nodes.set_index("name")["gone_s"].reindex(homes.categories)
    if not gone.notna().any():
        return np.zeros(0, dtype=np.int64)
    gone_s = np.append(gone.to_numpy(dtype=np.float64, na_value=np.nan), np.nan)[homes.codes.to_numpy()]
    end = floats(timeline.pods, "end_s")
    reported = np.isin(timeline.pods["pod"].to_numpy(), _pods_with(timeline, BAD_ENDS | _TAKEN))
    with_it = (end >= gone_s - _SOON_S) & (reported | (end >= gone_s)) | np.isnan(end)
    found = np.flatnonzero(timeline.of_runs(RUNNING, SERVING) & np.isfinite(gone_s) & with_it)
    return found[reported[found] | ~_last_tries(timeline, found)]


def _last_tries(timeline: Timeline, rows: Ints) -> Bools:
    """Of these rows of `Timeline.pods`: which are of the last pod of their task, in a run that succeeded."""
    run = timeline.pods["row"].to_numpy()
    good = (timeline.runs["state"] == SUCCEEDED).to_numpy(dtype=bool)[run[rows]]
    near = np.flatnonzero(np.isin(run, run[rows]))  # all pods of these runs
    pods = timeline.pods.iloc[near]
    begun = pods.groupby("pod")["start_s"].transform("min")
    last = begun == begun.groupby([pods["row"], pods["task"]], observed=True).transform("max")
    return np.asarray(good & last.to_numpy(dtype=bool)[np.searchsorted(near, rows)], dtype=np.bool_)


def _pods_with(timeline: Timeline, reasons: frozenset[str]) -> Ints:
    """Positions in `Timeline.names` of pods with an event of these reasons, ascending."""
    return timeline.numbers_of(timeline.events_of("Pod", *reasons)["object"])
