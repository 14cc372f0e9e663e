"""What pulls of images cost the runs: their own pods' pulls, and those of pods that hold what they wait for."""

from harness.analysis.timeline import Timeline
from harness.analysis.waits.critical_path import critical_path
from harness.analysis.waits.scheduling_wait import scheduling_wait
from harness.analysis.waits.startup_delay import startup_delay
from harness.model.phases import PULLING


def cost_of_pulls(timeline: Timeline) -> float:
    """The share of the runs' time, from 0 to 1; under a cap on active runs also the share of these runs' own time.

    Pods that wait for a node wait for the pods that hold one, and those pull; unless a new node comes before.
    """
    waited = critical_path(timeline).shares[PULLING] + scheduling_wait(timeline).for_pulls
    return min(1.0, waited * startup_delay(timeline).amplification)
