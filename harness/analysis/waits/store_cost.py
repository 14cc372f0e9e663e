"""What the artifact store costs the runs: their steps store their outputs, and read those of others."""

from typing import NamedTuple

from harness.analysis.timeline import Timeline
from harness.analysis.timeline.memory import remembered
from harness.analysis.waits.critical_path import critical_path
from harness.analysis.waits.scheduling_wait import scheduling_wait
from harness.analysis.waits.startup_delay import startup_delay

SLOW = 0.115  # of the runs' time, from which the store is slow


class StoreCost(NamedTuple):
    """Shares of all runs' time: that outputs took to be stored, and the same with the time to read them."""

    storing: float
    whole: float


@remembered
def store_cost(timeline: Timeline) -> StoreCost:
    """By the chains of pods that the runs' ends waited for."""
    wait = scheduling_wait(timeline)
    # Pods that wait for a node wait for the pods that hold one, and those store.
    held = wait.share * wait.holders.storing
    share = min(1.0, (critical_path(timeline).storing + held) * startup_delay(timeline).amplification)
    return StoreCost(share, min(1.0, share * (1 + _reading(timeline))))


def _reading(timeline: Timeline) -> float:
    """Seconds of reading per second of storing: what a step stores, the next one reads; the first one reads nothing."""
    tasks = timeline.pods["task"][(timeline.pods["row"] >= 0).to_numpy(dtype=bool)].unique()
    steps = sum(not str(task).endswith("-driver") for task in tasks)
    return 1 - 1 / max(steps, 1)
