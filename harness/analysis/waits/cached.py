"""Tasks that came from the platform's cache: their driver ran, and no executor followed.

KFP v2 starts two pods per task, ``…-system-container-driver-…`` and ``…-system-container-impl-…``. When the driver
finds the task's outputs in the cache, no executor starts. The run ends as SUCCEEDED all the same; its task details show
the executor as SKIPPED.
"""

import numpy as np

from harness.analysis.timeline import Bools, Ints, Timeline, beginnings
from harness.model.phases import CACHED, GAP, SUCCEEDED

_DRIVER_POD, _EXECUTOR_POD = "-system-container-driver-", "-system-container-impl-"
_DRIVER_TASK = "-driver"
_KUBERNETES = "kubernetes"  # prefix of the sources of pods and events


def runs_with_cached_tasks(timeline: Timeline) -> Ints:
    """Rows of `Timeline.runs` that succeeded although the platform did not execute one of their tasks.

    The task details say so, but only of the few runs whose details were read; of all runs the pods show it.
    """
    events, runs = timeline.events, timeline.runs
    cached = events["run"][((events["kind"] == "Task") & (events["reason"] == CACHED)).to_numpy(dtype=bool)]
    reported = np.flatnonzero(runs["run"].isin(cached.dropna()).to_numpy(dtype=bool))
    found = np.union1d(reported, _without_executor(timeline))
    succeeded = (runs["state"] == SUCCEEDED).to_numpy(dtype=bool)
    return np.asarray(found[succeeded[found]], dtype=np.int64)


def _without_executor(timeline: Timeline) -> Ints:
    """Rows of runs of which a task had a driver and no executor.

    Empty where pods were not observed for a while: an executor may have come and gone in between.
    """
    events = timeline.events
    gaps = (events["kind"] == "Observer") & (events["reason"] == GAP) & events["object"].str.startswith(_KUBERNETES)
    pods = timeline.pods
    tasks = pods["task"].cat.categories.astype("str")
    driving = tasks.str.endswith(_DRIVER_TASK)
    if gaps.any() or not driving.any():
        return np.zeros(0, dtype=np.int64)
    number = pods["pod"].to_numpy()
    first = beginnings(number)  # one row per pod
    first = first[pods["row"].to_numpy()[first] >= 0]
    row, task = pods["row"].to_numpy(dtype=np.int64)[first], pods["task"].cat.codes.to_numpy()[first]
    driven = tasks.get_indexer(
        tasks.str.removesuffix(_DRIVER_TASK)
    )  # by the driver's task; -1 when that never had a pod
    drivers = _called(timeline, _DRIVER_POD)[number[first]] & np.asarray(driving)[task]
    executors = _called(timeline, _EXECUTOR_POD)[number[first]]
    executed = row[executors] * len(tasks) + task[executors]
    wanted = np.where(driven[task] >= 0, row * len(tasks) + driven[task], -1)[drivers]
    return np.unique(row[drivers][~np.isin(wanted, executed)])


def _called(timeline: Timeline, part: str) -> Bools:
    """Per position in `Timeline.names`: the name contains `part`."""
    return timeline.names.str.contains(part, regex=False).to_numpy(dtype=bool)
