"""What runs wait for before their pods can work: images that are pulled, and drivers of new GPU nodes."""

from dataclasses import dataclass

import numpy as np

from harness.analysis.timeline import Timeline, distinct, floats
from harness.analysis.waits.critical_path import critical_path
from harness.model.phases import PULLING


@dataclass(frozen=True, slots=True)
class ImagePulls:
    """Pulls of images, and what they cost the runs.

    Attributes:
        pods: of the runs, that waited for a pull.
        run_s: seconds of a mean run's critical path (`critical_path`) in which an image was pulled. Image streaming, or
            images that are there before, save at most this: without the pull, another chain may be the longest.
        share: the same as a share of the runs' time.
    """

    pods: int
    run_s: float
    share: float


@dataclass(frozen=True, slots=True)
class GpuDrivers:
    """Installation of drivers on the GPU nodes that joined during the test.

    Attributes:
        nodes: how many.
        median_s: seconds from a node's readiness until its GPUs could be allocated.
        most_s: the longest.
        gpu_hours: charged meanwhile.
    """

    nodes: int
    median_s: float
    most_s: float
    gpu_hours: float


def image_pulls(timeline: Timeline) -> ImagePulls | None:
    """None when no pod of the runs waited for a pull."""
    pulling = timeline.of_runs(PULLING) & (timeline.pods["row"] >= 0).to_numpy(dtype=bool)
    path = critical_path(timeline)
    if not pulling.any() or not path.runs:
        return None
    share = path.shares[PULLING]
    return ImagePulls(distinct(timeline.pods["pod"].to_numpy()[pulling]), share * path.whole_s / path.runs, share)


def gpu_drivers(timeline: Timeline) -> GpuDrivers | None:
    """None when no node got its GPUs within the test.

    A node's readiness is the cluster's timestamp, in whole seconds; of its GPUs only the observer knows since when.
    """
    nodes = timeline.machines
    ready, gpus, count = (floats(nodes, name) for name in ("ready_s", "gpus_s", "gpu"))
    new = np.isfinite(ready) & np.isfinite(gpus)
    if not new.any():
        return None
    delay = np.maximum(gpus - ready, 0.0)[new]
    hours = float((delay * count[new]).sum()) / 3600
    return GpuDrivers(int(delay.size), float(np.median(delay)), float(delay.max()), hours)
