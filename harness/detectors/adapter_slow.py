"""Executions wait for the data of their adapters longer than they compute."""

import numpy as np

from harness.analysis.curves import mean_active, peak
from harness.analysis.services import Executions, executions
from harness.analysis.timeline import Timeline, floats
from harness.analysis.waits import waits_so_far
from harness.detectors import lb_imbalance
from harness.detectors.detector import SERVICE, CannotJudgeError, slowed
from harness.model.findings import Evidence, Finding
from harness.model.phases import COMPUTING, LOADING, QUEUED, SENDING
from harness.model.units import format_duration

NAME = "adapter-slow"
NEEDS = (SERVICE,)

_SHARE = 0.3
_COMPUTING = 0.5
_QUEUES = 0.1  # of all time: less does not make loading longer


def detect(timeline: Timeline) -> list[Finding]:
    """Even a quick load takes longer than a typical computation, and the workers seldom compute.

    Loading lasts longer where a worker does something else meanwhile. So the quickest tenth of the later loads is
    looked at, and how many computations there are at once: workers that are merely overloaded compute all the time.
    """
    done = executions(timeline)
    shares = waits_so_far(timeline).shares()
    share = shares[LOADING] + shares[SENDING]
    quick, computing = _quick(done), float(np.median(done.computing))
    if share < _SHARE or quick <= computing:
        return []
    if shares[QUEUED] >= _QUEUES and (_computing(timeline) > _COMPUTING or _unbalanced(timeline)):
        return []
    quarter = max(1, done.row.size // 4)
    early, late = float(np.median(done.loading[:quarter])), float(np.median(done.loading[-quarter:]))
    typical, sent = float(np.median(done.loading)), float(np.median(done.sending))
    return [
        Finding(
            NAME,
            f"The adapters are slow: executions spent {share:.0%} of their time loading and sending data",
            0.85,
            (
                Evidence(
                    f"loading took {format_duration(typical)}, sending {format_duration(sent)}, computing "
                    f"{format_duration(computing)} (medians)",
                    typical, "s", "spans", f"phase = {LOADING}",
                ),
                Evidence(
                    f"even the quickest tenth of the later loads took {format_duration(quick)}",
                    quick, "s", "spans", f"phase = {LOADING}",
                ),
                Evidence(
                    f"loading went from {format_duration(early)} (first quarter of the executions) to "
                    f"{format_duration(late)} (last)",
                    late, "s", "spans", f"phase = {LOADING}",
                ),
            ),
            "Make the adapter faster (more replicas, an index or a cache in front of its source, smaller time ranges), "
            "or bound how many executions ask it at once: a load blocks its worker while it lasts.",
            (),
            slowed(share + shares[QUEUED]),
        )
    ]  # fmt: skip


def _quick(done: Executions) -> float:
    """The first decile of the loading times in the later half of the test."""
    return float(np.quantile(done.loading[done.row.size // 2 :], 0.1))


def _computing(timeline: Timeline) -> float:
    """Computations at once in the later half of the test, as a share of the most there ever were."""
    stretches = timeline.stretches(COMPUTING)
    start, end = floats(stretches, "start_s"), floats(stretches, "end_s")
    late = np.quantile(start, (0.5, 0.95))
    if late[1] <= late[0]:
        return 1.0
    return float(mean_active(start, end, late)[0]) / max(peak(start, end), 1)


def _unbalanced(timeline: Timeline) -> bool:
    try:
        return bool(lb_imbalance.detect(timeline))
    except CannotJudgeError:
        return False
