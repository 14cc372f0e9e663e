"""Tasks that the platform answered from its cache: their driver ran, and no executor came after it.

KFP v2 starts two pods a task, ``…-system-container-driver-…`` and ``…-system-container-impl-…``; the driver that finds
the task's outputs in the cache is the last that is seen of it. The run ends as SUCCEEDED all the same.
"""

import numpy as np

from harness.analysis.timeline import Ints, Timeline
from harness.model.phases import GAP, SUCCEEDED

_DRIVER_POD, _EXECUTOR_POD = "-system-container-driver-", "-system-container-impl-"
_DRIVER_TASK = "-driver"
_KUBERNETES = "kubernetes"  # what the sources of pods and events are called begins with it


def runs_with_cached_tasks(timeline: Timeline) -> Ints:
    """Rows of `Timeline.runs` that succeeded although a task of theirs had a driver and no executor.

    None where pods were not seen for a while: an executor may have come and gone in between.
    """
    events = timeline.events
    gaps = (events["kind"] == "Observer") & (events["reason"] == GAP) & events["object"].str.startswith(_KUBERNETES)
    if gaps.any() or not len(timeline.pods):
        return np.zeros(0, dtype=np.int64)
    pods = timeline.pods[["row", "pod", "step", "task"]].drop_duplicates("pod")
    pods = pods[(pods["row"] >= 0).to_numpy(dtype=bool)]
    names, tasks = pods["step"].astype(str), pods["task"].astype(str)
    drivers = (names.str.contains(_DRIVER_POD, regex=False) & tasks.str.endswith(_DRIVER_TASK)).to_numpy(dtype=bool)
    executors = names.str.contains(_EXECUTOR_POD, regex=False).to_numpy(dtype=bool)
    rows = pods["row"].to_numpy(dtype=np.int64)
    executed = set(zip(rows[executors], tasks[executors], strict=True))
    driven = zip(rows[drivers], tasks[drivers].str.removesuffix(_DRIVER_TASK), strict=True)
    found = {int(row) for row, task in driven if (row, task) not in executed}
    succeeded = (timeline.runs["state"] == SUCCEEDED).to_numpy(dtype=bool)
    return np.array(sorted(row for row in found if succeeded[row]), dtype=np.int64)
