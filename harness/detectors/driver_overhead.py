"""The platform's own driver pods take much of the runs' time: many small steps."""

import numpy as np
from numpy.typing import NDArray

from harness.analysis.timeline import Bools, Floats, Timeline, distinct, floats
from harness.analysis.waits.waits import waits_so_far
from harness.detectors import too_few_samples
from harness.detectors.detector import PODS, RUNS, slowed
from harness.model.findings import Evidence, Finding
from harness.model.phases import POD_PHASES, PULLING, RUNNING, SCHEDULING, UNSCHEDULABLE
from harness.model.units import format_duration

NAME = "driver-overhead"
NEEDS = (RUNS, PODS)
TARGETS = ("kfp",)

_SHARE = 0.5
_SLOW_S, _COSTS = 5.0, 0.15  # a driver asks the API server and the metadata store a few questions
_KNOB_SLOW = (
    "Find out what its drivers wait for: their CPU limit, the metadata store (metadata-grpc-deployment) or the API. "
)
_LEAST_S = 1.5  # a driver; shorter ones can't be told from nothing where the platform stamps whole seconds


def detect(timeline: Timeline) -> list[Finding]:
    """Seconds in driver pods beside those in the steps' own pods; waiting for a node or an image is left out.

    They are too many where the steps are small, and too long where a single one takes what a driver never needs.
    """
    pods = timeline.pods
    waiting = {UNSCHEDULABLE, SCHEDULING, PULLING}
    mine = timeline.of_runs(*(phase for phase in POD_PHASES if phase not in waiting))
    driver = pods["task"].str.contains(r"(?:^root|-)-?driver$", regex=True).to_numpy(dtype=bool)
    if not (driver & mine).any():
        return []
    seconds = np.nan_to_num(floats(pods, "end_s") - floats(pods, "start_s"))
    of_drivers, of_steps = float(seconds[driver & mine].sum()), float(seconds[~driver & mine].sum())
    share = of_drivers / max(of_drivers + of_steps, 1e-9)
    low, runs = _least_share(pods["row"].to_numpy(), seconds, mine, driver)
    whole = float(waits_so_far(timeline).total.sum())
    count, steps = distinct(pods["pod"].to_numpy()[driver & mine]), distinct(pods["pod"].to_numpy()[~driver & mine])
    running = driver & timeline.of_runs(RUNNING)
    typical = float(np.median(seconds[running])) if running.any() else 0.0
    slow = typical >= _SLOW_S and of_drivers >= _COSTS * whole
    small = low >= _SHARE and of_drivers >= max(0.1 * whole, _LEAST_S * count)
    if not slow and not small:
        return []
    return [
        Finding(
            NAME,
            f"Driver pods take {share:.0%} of the pods' time: "
            + (f"each works for {format_duration(typical)}" if slow else "the steps are too small for what each costs"),
            0.85 if runs >= too_few_samples.LEAST else 0.5,
            (
                Evidence(f"{count:,} driver pods beside {steps:,} pods of steps", float(count), "pods", "spans"),
                Evidence(
                    f"a driver took {format_duration(of_drivers / max(count, 1))}, a step "
                    f"{format_duration(of_steps / max(steps, 1))}",
                    of_drivers / max(count, 1), "s", "spans", "task ~ driver",
                ),
            ),
            (_KNOB_SLOW if slow else "") + "Make fewer and larger steps, and have the driver's image on every node; "
            "drivers run wherever there is room, not on the pool of the steps.",
            (),
            slowed(of_drivers / max(whole, 1e-9)),
        )
    ]  # fmt: skip


def _least_share(row: NDArray[np.int32], seconds: Floats, mine: Bools, driver: Bools) -> tuple[float, int]:
    """The lower end of the drivers' mean share over the runs (95 %), and the number of runs."""
    of_drivers, whole = (np.bincount(row[which], weights=seconds[which]) for which in (mine & driver, mine))
    of_drivers = np.pad(of_drivers, (0, whole.size - of_drivers.size))
    shares = of_drivers[whole > 0] / whole[whole > 0]
    return float(shares.mean() - 2 * shares.std() / np.sqrt(shares.size)) if shares.size else 0.0, shares.size
