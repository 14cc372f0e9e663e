"""Tasks that the platform answered from its cache: their driver ran, and no executor came after it.

KFP v2 starts two pods a task, ``…-system-container-driver-…`` and ``…-system-container-impl-…``; the driver that finds
the task's outputs in the cache is the last that is seen of it. The run ends as SUCCEEDED all the same. Its task details
show the executor as SKIPPED.
"""

import numpy as np

from harness.analysis.timeline import Bools, Ints, Timeline, beginnings
from harness.model.phases import CACHED, GAP, SUCCEEDED

_DRIVER_POD, _EXECUTOR_POD = "-system-container-driver-", "-system-container-impl-"
_DRIVER_TASK = "-driver"
_KUBERNETES = "kubernetes"  # what the sources of pods and events are called begins with it


def runs_with_cached_tasks(timeline: Timeline) -> Ints:
    """Rows of `Timeline.runs` that succeeded although the platform did not execute a task of theirs.

    It says so itself of the few runs that were asked for their tasks; of all runs it is told by their pods.
    """
    events, runs = timeline.events, timeline.runs
    said = events["run"][((events["kind"] == "Task") & (events["reason"] == CACHED)).to_numpy(dtype=bool)]
    told = np.flatnonzero(runs["run"].isin(said.dropna()).to_numpy(dtype=bool))
    found = np.union1d(told, _without_executor(timeline))
    succeeded = (runs["state"] == SUCCEEDED).to_numpy(dtype=bool)
    return np.asarray(found[succeeded[found]], dtype=np.int64)


def _without_executor(timeline: Timeline) -> Ints:
    """Rows of runs of which a task had a driver and no executor.

    None where pods were not seen for a while: an executor may have come and gone in between.
    """
    events = timeline.events
    gaps = (events["kind"] == "Observer") & (events["reason"] == GAP) & events["object"].str.startswith(_KUBERNETES)
    pods = timeline.pods
    tasks = pods["task"].cat.categories.astype("str")
    driving = tasks.str.endswith(_DRIVER_TASK)
    if gaps.any() or not driving.any():
        return np.zeros(0, dtype=np.int64)
    number = pods["pod"].to_numpy()
    first = beginnings(number)  # a row a pod
    first = first[pods["row"].to_numpy()[first] >= 0]
    row, task = pods["row"].to_numpy(dtype=np.int64)[first], pods["task"].cat.codes.to_numpy()[first]
    driven = tasks.get_indexer(tasks.str.removesuffix(_DRIVER_TASK))  # by driver's task; -1 when it never had a pod
    drivers = _called(timeline, _DRIVER_POD)[number[first]] & np.asarray(driving)[task]
    executors = _called(timeline, _EXECUTOR_POD)[number[first]]
    executed = row[executors] * len(tasks) + task[executors]
    wanted = np.where(driven[task] >= 0, row * len(tasks) + driven[task], -1)[drivers]
    return np.unique(row[drivers][~np.isin(wanted, executed)])


def _called(timeline: Timeline, part: str) -> Bools:
    """Per pod number: whether its name has this part."""
    return timeline.names.str.contains(part, regex=False).to_numpy(dtype=bool)
