"""The platform's own driver pods take much of the runs' time: many small steps."""

import numpy as np

from harness.analysis.timeline import Timeline, distinct, floats
from harness.analysis.waits import waits_so_far
from harness.detectors.detector import PODS, RUNS, slowed
from harness.model.findings import Evidence, Finding
from harness.model.phases import POD_PHASES, PULLING, SCHEDULING, UNSCHEDULABLE
from harness.model.units import format_duration

NAME = "driver-overhead"
NEEDS = (RUNS, PODS)
TARGETS = ("kfp",)

_SHARE = 0.5


def detect(timeline: Timeline) -> list[Finding]:
    """Seconds in driver pods beside those in the steps' own pods; waiting for a node or an image is left out."""
    pods = timeline.pods
    others = [POD_PHASES.index(phase) for phase in (UNSCHEDULABLE, SCHEDULING, PULLING)]
    waiting = pods["phase"].isin(others).to_numpy(dtype=bool)
    mine = (pods["row"] >= 0).to_numpy(dtype=bool) & ~waiting
    driver = pods["task"].str.contains(r"(?:^root|-)-?driver$", regex=True).to_numpy(dtype=bool)
    if not (driver & mine).any():
        return []
    seconds = np.nan_to_num(floats(pods, "end_s") - floats(pods, "start_s"))
    of_drivers, of_steps = float(seconds[driver & mine].sum()), float(seconds[~driver & mine].sum())
    share = of_drivers / max(of_drivers + of_steps, 1e-9)
    whole = float(waits_so_far(timeline).total.sum())
    if share < _SHARE or of_drivers < 0.1 * whole:
        return []
    count, steps = distinct(pods["pod"].to_numpy()[driver & mine]), distinct(pods["pod"].to_numpy()[~driver & mine])
    return [
        Finding(
            NAME,
            f"Driver pods take {share:.0%} of the pods' time: the steps are too small for what each costs",
            0.85,
            (
                Evidence(f"{count:,} driver pods beside {steps:,} pods of steps", float(count), "pods", "spans"),
                Evidence(
                    f"a driver took {format_duration(of_drivers / max(count, 1))}, a step "
                    f"{format_duration(of_steps / max(steps, 1))}",
                    of_drivers / max(count, 1), "s", "spans", "task ~ driver",
                ),
            ),
            "Make fewer and larger steps, and have the driver's image on every node; drivers run wherever "
            "there is room, not on the pool of the steps.",
            (),
            slowed(of_drivers / max(whole, 1e-9)),
        )
    ]  # fmt: skip
