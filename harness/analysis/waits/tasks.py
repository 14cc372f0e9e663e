"""Pods by task of the pipeline, all runs together."""

from dataclasses import dataclass

import numpy as np

from harness.analysis.timeline import Floats, Ints, Timeline, beginnings, floats
from harness.model.phases import POD_PHASES


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
    length = np.nan_to_num(floats(pods, "end_s") - floats(pods, "start_s"), copy=False)
    cell = task.astype(np.int64)
    cell *= shape[1]
    cell += pods["phase"].to_numpy()
    seconds = np.bincount(cell, length, shape[0] * shape[1]).astype(np.float64)
    seconds[np.bincount(cell, minlength=seconds.size) == 0] = np.nan
    first = beginnings(pods["pod"].to_numpy())
    counts = np.bincount(task[first], minlength=len(names)).astype(np.int64)
    order = np.array([k for k in sorted(range(len(names)), key=names.__getitem__) if counts[k]], dtype=np.int64)
    return Tasks(tuple(str(names[k]) for k in order), counts[order], seconds.reshape(shape)[order])
