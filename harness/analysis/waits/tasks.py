"""Pods by task of the pipeline, all runs together."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from harness.analysis.timeline import Floats, Ints, Timeline, begins, blocks, floats
from harness.model.phases import POD_PHASES, RUNNING, SUCCEEDED


def quickest_s(timeline: Timeline) -> Mapping[str, float]:
    """Seconds by step. Of several pods of a step in one run, the longest counts: the others may have been lost."""
    succeeded = timeline.runs["state"].to_numpy() == SUCCEEDED
    ran = timeline.stretches(RUNNING)
    ran = ran[succeeded[ran["row"].to_numpy()]]
    took = (ran["end_s"] - ran["start_s"]).groupby([ran["task"].astype("str"), ran["row"], ran["pod"]]).sum()
    quickest = took.groupby(level=[0, 1]).max().groupby(level=0).min()
    return {str(task): float(seconds) for task, seconds in quickest.items()}


@dataclass(frozen=True, slots=True, eq=False)
class Tasks:
    """One entry per task, by name.

    Attributes:
        names: of the tasks; "" for pods that belong to none.
        pods: number of pods, shape (n,).
        seconds: total of all pods in each of POD_PHASES, shape (n, len(POD_PHASES)); NaN without such a pod.
    """

    names: tuple[str, ...]
    pods: Ints
    seconds: Floats


def tasks(timeline: Timeline) -> Tasks:
    """Sum up the intervals of all pods; open ones count with length 0."""
    pods = timeline.pods
    names = pods["task"].cat.categories.astype("str")
    task, shape = pods["task"].cat.codes.to_numpy(), (len(names), len(POD_PHASES))
    phase, start, end = pods["phase"].to_numpy(), floats(pods, "start_s"), floats(pods, "end_s")
    seconds, found = np.zeros(shape[0] * shape[1]), np.zeros(shape[0] * shape[1], dtype=bool)
    new, counts = begins(pods["pod"].to_numpy()), np.zeros(len(names), dtype=np.int64)
    for part in blocks(len(pods)):
        cell = task[part].astype(np.int64) * shape[1] + phase[part]
        np.add.at(seconds, cell, np.nan_to_num(end[part] - start[part], copy=False))
        found[cell] = True
        counts += np.bincount(task[part][new[part]], minlength=len(names))
    seconds[~found] = np.nan
    order = np.array([k for k in sorted(range(len(names)), key=names.__getitem__) if counts[k]], dtype=np.int64)
    return Tasks(tuple(str(names[k]) for k in order), counts[order], seconds.reshape(shape)[order])
