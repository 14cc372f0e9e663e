"""The artifact store is slow: steps wait while their outputs are written."""

import numpy as np

from harness.analysis.timeline import Timeline, floats
from harness.analysis.waits.failures import failures
from harness.analysis.waits.scheduling_wait import scheduling_wait
from harness.analysis.waits.waits import waits_so_far
from harness.detectors.detector import PODS, RUNS, CannotJudgeError, slowed
from harness.detectors.store_full import FULL, UNWRITTEN
from harness.model.findings import Evidence, Finding
from harness.model.phases import RUNNING, STORING
from harness.model.units import format_duration

NAME = "store-slow"
NEEDS = (RUNS, PODS)

_SHARE = 0.15
_LEAST_S = 2.0
_WAITED = 0.02  # of the time: worth a word beside the storing itself


def detect(timeline: Timeline) -> list[Finding]:
    """Storing takes a large share of the runs' time; where writes fail, they took long for another reason."""
    storing = timeline.stretches(STORING)
    if not len(storing):
        raise CannotJudgeError("the time in which outputs are stored was not seen apart from the steps' own time")
    found = scheduling_wait(timeline)
    storing_share = waits_so_far(timeline).shares()[STORING]
    # Whoever waits for a node waits for those who have one, and these store.
    share = storing_share + found.share * found.storing
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
            + (", or waiting for a node that stores" if share > storing_share + _WAITED else ""),
            0.4 if any(f.says(FULL, UNWRITTEN) for f in failures(timeline)) else 0.85,
            (
                Evidence(
                    f"{storing_share:.1%} of all runs' time passed while outputs were stored",
                    storing_share,
                    "share",
                    "spans",
                ),
                Evidence(
                    f"a slow step (p90) stored for {format_duration(slow)}", slow, "s", "spans", f"phase = {STORING}"
                ),
                Evidence(f"for each second of work steps stored for {ratio:.2f} s", ratio, "", "spans"),
            ),
            "Give the store a faster volume and more CPU, keep outputs small, or share data in memory instead.",
            (f"kubectl top pods -n {timeline.namespace} --sort-by=cpu",),
            slowed(share),
        )
    ]  # fmt: skip
