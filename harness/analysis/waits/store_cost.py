"""What the artifact store costs the runs: their steps store their outputs, and read those of others."""

from typing import NamedTuple

import numpy as np

from harness.analysis.timeline import Timeline, beginnings
from harness.analysis.timeline.memory import remembered
from harness.analysis.waits.critical_path import critical_path
from harness.analysis.waits.quota_waits import quota_waits
from harness.analysis.waits.scheduling_wait import scheduling_wait
from harness.analysis.waits.startup_delay import startup_delay

_OFTEN = 2.0  # pods of a task in each run are iterations: retries are rarer
_ENOUGH = 500_000  # stretches of pods: which tasks are loops shows in the first runs
SLOW = 0.09  # of the runs' time, from which the store is slow
_BESIDE = 1.5  # times what a slow store costs: on drawn platforms, that much less was saved


class StoreCost(NamedTuple):
    """Shares of all runs' time: that outputs took to be stored, and the same with the time to read them."""

    storing: float
    whole: float


@remembered
def store_cost(timeline: Timeline) -> StoreCost:
    """By the chains of pods that the runs' ends waited for."""
    wait, quota = scheduling_wait(timeline), quota_waits(timeline)
    # Pods that wait for a node, or for room in a quota, wait for the pods that hold it, and those store.
    held = wait.share * wait.holders.storing + quota.share * quota.holders.storing
    share = min(1.0, (critical_path(timeline).storing + held) * startup_delay(timeline).amplification)
    return StoreCost(share, min(1.0, share * (1 + _reading(timeline))))


def crowding(timeline: Timeline) -> float:
    """The share of other savings that a slow store takes instead: pods that come sooner store beside each other."""
    cost = store_cost(timeline).whole
    return min(1.0, _BESIDE * cost) if cost >= SLOW else 0.0


def _reading(timeline: Timeline) -> float:
    """Seconds of reading per second of storing: what a step stores, the next one reads.

    The first step reads nothing. Nor do those of a loop, which take an item each, nor the one that follows a loop.
    """
    pods = timeline.pods
    of_runs = pods["row"].to_numpy() >= 0
    begin = int(of_runs.argmax()) if of_runs.size else 0
    stretches = begin + np.flatnonzero(of_runs[begin : begin + _ENOUGH])
    first = stretches[beginnings(pods["pod"].to_numpy()[stretches])]
    task, row = pods["task"].cat.codes.to_numpy()[first].astype(np.int64), pods["row"].to_numpy()[first]
    names = pods["task"].cat.categories
    count = np.bincount(task, minlength=len(names))
    runs = np.bincount(np.unique(np.column_stack((task, row)), axis=0)[:, 0], minlength=len(names))
    step = (count > 0) & np.array([not str(name).endswith("-driver") for name in names], dtype=bool)
    steps, loops = int(step.sum()), int((step & (count >= _OFTEN * runs)).sum())
    return max(0.0, 1 - (1 + 2 * loops) / max(steps, 1))
