"""The artifact store is slow: steps wait while it writes their outputs."""

import numpy as np

from harness.analysis.timeline import Timeline, floats
from harness.analysis.waits.failures import failures
from harness.analysis.waits.scheduling_wait import scheduling_wait
from harness.analysis.waits.waits import waits_so_far
from harness.detectors.capability import Capability
from harness.detectors.detector import CannotJudgeError, slowed
from harness.detectors.error_texts import STORE_FULL, UNWRITTEN
from harness.model.findings import Evidence, Finding
from harness.model.phases import RUNNING, STORING
from harness.model.units import format_duration

NAME = "store-slow"
NEEDS = (Capability.RUNS, Capability.PODS)
FAULTS = ("store-slow",)

_SHARE = 0.15
_LEAST_S = 2.0
_WAITED = 0.02  # of the runs' time: worth mentioning beside the storing itself


def detect(timeline: Timeline) -> list[Finding]:
    """Storing takes a large share of the runs' time; failing writes may take long for another reason."""
    storing = timeline.stretches(STORING)
    if not len(storing):
        raise CannotJudgeError("the time to store outputs was not observed separately from the steps' own time")
    wait = scheduling_wait(timeline)
    storing_share = waits_so_far(timeline).shares()[STORING]
    # Pods that wait for a node wait for the pods that hold one, and those store.
    share = storing_share + wait.share * wait.storing
    seconds = floats(storing, "end_s") - floats(storing, "start_s")
    seconds = seconds[np.isfinite(seconds)]
    slow = float(np.quantile(seconds, 0.9)) if seconds.size else 0.0
    if share < _SHARE or slow < _LEAST_S:
        return []
    running = timeline.stretches(RUNNING)
    worked = float(np.nansum(floats(running, "end_s") - floats(running, "start_s")))
    ratio = float(seconds.sum()) / max(worked, 1e-9)
    return [
        Finding(
            NAME,
            f"The artifact store is slow: runs spent {share:.0%} of their time storing outputs"
            + (", or waiting for a node that is busy storing" if share > storing_share + _WAITED else ""),
            0.4 if any(f.says(STORE_FULL, UNWRITTEN) for f in failures(timeline)) else 0.85,
            (
                Evidence(f"{storing_share:.1%} of all run time was spent storing", storing_share, "share", "spans"),
                Evidence(f"time to store (p90): {format_duration(slow)}", slow, "s", "spans", f"phase = {STORING}"),
                Evidence(f"steps stored for {ratio:.2f} s per second of work", ratio, "", "spans"),
            ),
            "Give the store a faster volume and more CPU, reduce the size of outputs, or pass data in memory instead.",
            (f"kubectl top pods -n {timeline.namespace} --sort-by=cpu",),
            slowed(share),
        )
    ]  # fmt: skip
