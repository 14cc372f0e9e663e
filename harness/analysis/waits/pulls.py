"""What pulls of images cost the runs: their own pods' pulls, and those of pods that hold what they wait for."""

import numpy as np

from harness.analysis.timeline import Timeline
from harness.analysis.timeline.memory import remembered
from harness.analysis.waits.critical_path import critical_path
from harness.analysis.waits.holders import Held, without
from harness.analysis.waits.quota_waits import quota_waits
from harness.analysis.waits.scheduling_wait import scheduling_wait
from harness.analysis.waits.startup_delay import Slots, startup_delay
from harness.analysis.waits.stated import unstated
from harness.analysis.waits.waits import waits_so_far
from harness.model.phases import PULLING

_OF_QUOTA = 0.5  # of the waits for a quota that pulls prolong: on drawn platforms, that much was saved


@remembered
def cost_of_pulls(timeline: Timeline) -> float:
    """The share of the runs' time, from 0 to 1.

    Pods that wait for a node, or for room in a quota, wait for the pods that hold it, and those pull. Under a cap on
    active runs, the others wait for their slots as long as those that have one, and their pulls.
    """
    found, own = startup_delay(timeline), critical_path(timeline).shares[PULLING] * unstated(timeline)[PULLING]
    for_slots = found.queue * _of_slots(timeline, found.slots, found.unhindered_s) if found.slots is not None else 0.0
    quota = quota_waits(timeline)
    for_others = scheduling_wait(timeline).for_pulls + _OF_QUOTA * quota.share * quota.holders.queued_by_pulls
    return min(1.0, own + for_others * found.amplification + for_slots)


def _of_slots(timeline: Timeline, slots: Slots, unhindered_s: float) -> float:
    """The share of the waits for a slot that would not be without the pulls of the runs that hold one."""
    split, over = waits_so_far(timeline), np.maximum(slots.over, slots.first)
    pulled = np.clip(split.of(PULLING)[np.isin(split.row, slots.row)], 0.0, over - slots.first)
    # Each run pulls first, and then does the rest.
    start = np.column_stack((slots.first, slots.first + pulled)).ravel()
    end = np.column_stack((slots.first + pulled, over)).ravel()
    run, pulling = np.repeat(np.arange(slots.row.size), 2), np.tile([True, False], slots.row.size)
    return without(slots.answered + unhindered_s, slots.first, Held(run, start, end, np.ones(start.size), pulling))
