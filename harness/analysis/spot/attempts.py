"""The pods of runs as attempts at their steps: which were lost, and which one followed."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from harness.analysis.timeline import Timeline, floats, remembered
from harness.analysis.waits.wasted_work import lost_pods
from harness.model.phases import RUNNING

_RESOLUTION_S = 1.0  # of Kubernetes' timestamps


@remembered
def attempts(timeline: Timeline) -> pd.DataFrame:
    """One row per pod of the runs: row (of `Timeline.runs`), task, node, created_s, over_s, started_s, worked_s, spot.

    `started_s` is NaN for a pod that never ran. `lost` is whether it was evicted, deleted or lost with its node, and
    `whole` whether it ended by itself and did not fail. Of lost pods: `followed`, whether their task got another pod
    afterwards, and `next_s`, when that one started (NaN if it did not).
    """
    own = (timeline.pods["row"] >= 0).to_numpy(dtype=bool)
    mine, running = timeline.pods[own], timeline.pods[own & timeline.of_runs(RUNNING)]
    length = np.nan_to_num(floats(running, "end_s"), nan=timeline.end_s) - floats(running, "start_s")
    ran = running.assign(worked_s=length).groupby("pod", sort=True)
    whole = mine.groupby("pod", sort=True)
    frame = pd.DataFrame(
        {
            "row": whole["row"].first(),
            "task": whole["task"].first().astype("str"),
            "node": whole["node"].last().astype("str"),
            "created_s": whole["start_s"].min(),
            "over_s": whole["end_s"].max(),
            "started_s": ran["start_s"].min(),
            "worked_s": ran["worked_s"].sum(),
        }
    )
    machines = timeline.machines
    failed, taken = lost_pods(timeline)
    unfinished = mine["pod"].to_numpy()[np.isnan(floats(mine, "end_s"))]
    pods = frame.assign(
        worked_s=frame["worked_s"].fillna(0.0),
        lost=np.isin(frame.index.to_numpy(), taken),
        whole=~np.isin(frame.index.to_numpy(), np.concatenate((failed, taken, unfinished))),
        spot=frame["node"].isin(machines["name"][machines["spot"].to_numpy(dtype=bool)]),
    ).reset_index(drop=True)
    followed, next_s, started = np.zeros(len(pods), dtype=bool), np.full(len(pods), np.nan), floats(pods, "started_s")
    for index, following in _following(pods):
        followed[index], next_s[index] = True, started[following]
    return pods.assign(followed=followed, next_s=next_s)


def _following(pods: pd.DataFrame) -> Iterator[tuple[int, int]]:
    """Rows of lost pods, and of the first pod of the same task that was created after their end.

    A loop has several pods of a task at the same time: those are no further attempts.
    """
    hit = pods[pods.groupby(["row", "task"])["lost"].transform("any")].sort_values("created_s", kind="stable")
    for _, rows in hit.groupby(["row", "task"], sort=True):
        created = rows["created_s"].to_numpy()
        for index, over_s in zip(rows.index[rows["lost"]], rows["over_s"][rows["lost"]], strict=True):
            later = int(np.searchsorted(created, over_s - _RESOLUTION_S))
            candidates = [each for each in rows.index[later:] if each != index]
            if candidates:
                yield int(index), int(candidates[0])
