"""The platform's driver pods take much of the runs' time: they are slow, or steps are too small."""

import numpy as np
from numpy.typing import NDArray

from harness.analysis.timeline import Bools, Floats, Timeline, distinct, floats
from harness.analysis.waits.critical_path import critical_path
from harness.detectors.detector import FEW_RUNS, Capability, Evidence, Finding, format_duration, slowed
from harness.model.phases import FAILED, POD_PHASES, PULLING, RUNNING, SCHEDULING, UNSCHEDULABLE

NAME = "driver-overhead"
NEEDS = (Capability.RUNS, Capability.PODS)
TARGETS = ("kfp",)
OVERSTATED_EARLY = True

_MIN_SHARE_OF_PODS_TIME = 0.5  # drivers work longer than the steps that they start
_MIN_SLOW_DRIVER_S = 5.0  # a driver makes a few requests to the API server and the metadata store
# Of the runs' time, by drivers that the runs' ends waited for; larger steps save less of it than quicker drivers.
_MIN_COST, _MIN_COST_OF_SMALL_STEPS = 0.08, 0.15
_FIX_SLOW = (
    "Check what the drivers wait for: their CPU limit, the metadata store (metadata-grpc-deployment) or the API. "
)
_MIN_DRIVER_S = 1.5  # of a driver; timestamps in whole seconds do not resolve shorter ones


def detect(timeline: Timeline) -> list[Finding]:
    """Time in driver pods against time in the steps' own pods, without waiting for a node or an image.

    Drivers outweigh small steps; a single driver that takes longer than drivers need is slow by itself. Runs that
    failed are left out: a driver may last until it fails, and the steps after it have no pods.
    """
    pods = timeline.pods
    waiting = {UNSCHEDULABLE, SCHEDULING, PULLING}
    mine = timeline.of_runs(*(phase for phase in POD_PHASES if phase not in waiting))
    mine &= ~(timeline.runs["state"] == FAILED).to_numpy(dtype=bool)[pods["row"]]
    driver = pods["task"].str.contains(r"(?:^root|-)-?driver$", regex=True).to_numpy(dtype=bool)
    if not (driver & mine).any():
        return []
    seconds = np.nan_to_num(floats(pods, "end_s") - floats(pods, "start_s"))
    of_drivers, of_steps = float(seconds[driver & mine].sum()), float(seconds[~driver & mine].sum())
    share = of_drivers / max(of_drivers + of_steps, 1e-9)
    low, runs = _least_share(pods["row"].to_numpy(), seconds, mine, driver)
    count, steps = distinct(pods["pod"].to_numpy()[driver & mine]), distinct(pods["pod"].to_numpy()[~driver & mine])
    running = driver & mine & timeline.of_runs(RUNNING)
    typical = float(np.median(seconds[running])) if running.any() else 0.0
    slow, small = typical >= _MIN_SLOW_DRIVER_S, low >= _MIN_SHARE_OF_PODS_TIME and of_drivers >= _MIN_DRIVER_S * count
    cost = critical_path(timeline).driving
    if cost < (_MIN_COST if slow else _MIN_COST_OF_SMALL_STEPS) or not (slow or small):
        return []
    return [
        Finding(
            NAME,
            f"Driver pods take {share:.0%} of the pods' time: "
            + (f"each runs for {format_duration(typical)}" if slow else "the steps are too small for this overhead"),
            0.95 if runs >= FEW_RUNS else 0.9 if slow else 0.5,
            (
                Evidence(f"{count:,} driver pods for {steps:,} step pods", float(count), "pods", "spans"),
                Evidence(
                    f"a driver took {format_duration(of_drivers / max(count, 1))}, a step "
                    f"{format_duration(of_steps / max(steps, 1))} (means)",
                    of_drivers / max(count, 1), "s", "spans", "task ~ driver",
                ),
                Evidence(f"runs waited for drivers to run for {cost:.0%} of their time", cost, "share", "spans"),
            ),
            (_FIX_SLOW if slow else "") + "Use fewer and larger steps, and pre-pull the driver image on every node: "
            "drivers run on any node with room, not only on the steps' pool.",
            (),
            slowed(cost),
        )
    ]  # fmt: skip


def _least_share(row: NDArray[np.int32], seconds: Floats, mine: Bools, driver: Bools) -> tuple[float, int]:
    """The lower 95 % bound of the drivers' mean share over the runs, and the number of runs."""
    of_drivers, whole = (np.bincount(row[which], weights=seconds[which]) for which in (mine & driver, mine))
    of_drivers = np.pad(of_drivers, (0, whole.size - of_drivers.size))
    shares = of_drivers[whole > 0] / whole[whole > 0]
    return float(shares.mean() - 2 * shares.std() / np.sqrt(shares.size)) if shares.size else 0.0, shares.size
