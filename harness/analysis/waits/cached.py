"""Tasks that came from the platform's cache: their driver ran, and no executor followed.

KFP v2 starts two pods per task, ``…-system-container-driver-…`` and ``…-system-container-impl-…``. When the driver
finds the task's outputs in the cache, no executor starts. The run ends as SUCCEEDED all the same; its task details show
the executor as SKIPPED.
"""

from dataclasses import dataclass

import numpy as np

from harness.analysis.timeline import Bools, Ints, Timeline, beginnings, position, remembered
from harness.analysis.waits.wasted_work import lost_pods
from harness.model.phases import CACHED, GAP, RESUMED, SCRAPED, SUCCEEDED, WRONG_CLUSTER

_DRIVER_POD, _EXECUTOR_POD = "-system-container-driver-", "-system-container-impl-"
_DRIVER_TASK = "-driver"
_INTERRUPTED = (GAP, RESUMED, SCRAPED, WRONG_CLUSTER)


@dataclass(frozen=True, slots=True, eq=False)
class Caching:
    """Rows of `Timeline.runs` that succeeded, ascending.

    Attributes:
        judged: runs whose pods or task details show whether every task was executed.
        cached: those of them in which a task was not executed.
        tasks: how many tasks were not executed in each run of `cached`.
    """

    judged: Ints
    cached: Ints
    tasks: Ints


@remembered
def caching(timeline: Timeline) -> Caching:
    """Combine the task details, which were read of a few runs, with the pods, which show it of all runs."""
    succeeded = (timeline.runs["state"] == SUCCEEDED).to_numpy(dtype=bool)
    shown, without_executor = _shown_by_pods(timeline)
    runs = timeline.runs
    skipped = position(timeline.events_of("Task", CACHED)["run"].dropna().astype("str"), runs["run"])
    # Both ways may show the same task.
    tasks = np.maximum(*(np.bincount(rows, minlength=len(runs)) for rows in (skipped[skipped >= 0], without_executor)))
    judged = tasks > 0
    cached = np.flatnonzero(judged & succeeded)
    judged[timeline.described] = judged[shown] = True
    return Caching(np.flatnonzero(judged & succeeded), cached, tasks[cached])


def runs_with_cached_tasks(timeline: Timeline) -> Ints:
    """Rows of `Timeline.runs` that succeeded although the platform did not execute one of their tasks."""
    return caching(timeline).cached


def _shown_by_pods(timeline: Timeline) -> tuple[Ints, Ints]:
    """Rows of runs with driver pods, and a row for each driver of a task that no executor followed.

    In a loop or in nested pipelines several tasks of a run may have the same name. A driver that was lost runs again,
    so where pods were lost only a task without any executor counts.

    Empty where the observation was interrupted, however briefly: an executor may have come and gone in between.
    """
    events, pods = timeline.events, timeline.pods
    interrupted = (events["kind"] == "Observer") & events["reason"].isin(_INTERRUPTED)
    nothing = np.zeros(0, dtype=np.int64)
    if interrupted.any() or not len(pods):
        return nothing, nothing
    tasks = pods["task"].cat.categories.astype("str")
    number = pods["pod"].to_numpy()
    first = beginnings(number)  # one row per pod
    row, task = pods["row"].to_numpy(dtype=np.int64)[first], pods["task"].cat.codes.to_numpy()[first]
    driven = tasks.get_indexer(tasks.str.removesuffix(_DRIVER_TASK))[task]  # -1 when that task never had a pod
    drives = np.asarray(tasks.str.endswith(_DRIVER_TASK), dtype=np.bool_)
    if not drives.any():
        return nothing, nothing
    drivers = _called(timeline, _DRIVER_POD)[number[first]] & drives[task]
    executors = _called(timeline, _EXECUTOR_POD)[number[first]]
    known = drivers & (driven >= 0)
    wanted, drove = np.unique(row[known] * len(tasks) + driven[known], return_counts=True)
    executed = np.sort(row[executors] * len(tasks) + task[executors])
    ran = np.searchsorted(executed, wanted, side="right") - np.searchsorted(executed, wanted)
    lost = np.isin(number[first], np.concatenate(lost_pods(timeline)))
    repeated = np.isin(wanted // len(tasks), row[lost])
    lacking = np.where(repeated, ran == 0, np.maximum(drove - ran, 0))
    return np.unique(row[drivers]), np.concatenate((row[drivers & ~known], np.repeat(wanted // len(tasks), lacking)))


def _called(timeline: Timeline, part: str) -> Bools:
    """Per position in `Timeline.names`: the name contains `part`."""
    return timeline.names.where(lambda texts: texts.str.contains(part, regex=False))
