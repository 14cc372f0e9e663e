"""How long runs wait for pulls of images: their own pods', and those of pods that hold what they wait for."""

from harness.analysis.timeline import Timeline
from harness.analysis.waits.critical_path import critical_path
from harness.analysis.waits.scheduling_wait import scheduling_wait
from harness.model.phases import PULLING


def waited_for_pulls(timeline: Timeline) -> float:
    """The share of the runs' time, from 0 to 1.

    Pods that wait for a node wait for the pods that hold one, and those pull; unless a new node comes before.
    """
    return min(1.0, critical_path(timeline).shares[PULLING] + scheduling_wait(timeline).for_pulls)
