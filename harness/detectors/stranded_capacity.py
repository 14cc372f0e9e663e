"""Steps request more than they use: pods wait for room on nodes that have little to do."""

import numpy as np

from harness.analysis.cost.node_use import node_use
from harness.analysis.timeline import Floats, Timeline, floats
from harness.analysis.timeline.curves import active
from harness.analysis.waits.scheduling_wait import scheduling_wait
from harness.detectors.detector import NODE_CPU, NODES, PODS, RUNS, CannotJudgeError, slowed
from harness.detectors.nodes_exhausted import SHARE, sure
from harness.model.findings import Evidence, Finding
from harness.model.phases import NODE_CPU_CORES, UNSCHEDULABLE

NAME = "stranded-capacity"
NEEDS = (RUNS, PODS, NODES, NODE_CPU)

_BUSY = 0.35
_LEAST = 5  # samples while pods waited


def detect(timeline: Timeline) -> list[Finding]:
    """The nodes' CPU use, taken only while pods found no node for want of CPU or memory."""
    found = scheduling_wait(timeline)
    if found.share < SHARE:
        return []
    used = _used_while_waiting(timeline)
    if used.size < _LEAST:
        raise CannotJudgeError("the nodes' CPU use was hardly observed while pods waited for room")
    busy = float(np.mean(used))
    if busy >= _BUSY:
        return []
    what = found.lacks[0][0].removeprefix("Insufficient ") if found.lacks else "room"
    return [
        Finding(
            NAME,
            f"Capacity is stranded: pods waited for room while the nodes used {busy:.0%} of their CPU",
            sure(0.88, found),
            (
                Evidence(
                    f"{found.share:.1%} of all runs' time passed while pods found no node; by their requests the nodes "
                    f"were out of {what}",
                    found.share, "share", "spans", f"phase = {UNSCHEDULABLE}",
                ),
                Evidence(
                    f"meanwhile the nodes used {busy:.0%} of their CPU (mean of {used.size:,} samples, p95 "
                    f"{float(np.quantile(used, 0.95)):.0%})",
                    busy, "share", "samples", f"metric = {NODE_CPU_CORES}",
                ),
            ),
            "Request what steps use, not more (pipeswarm resources on this run says what that is), and sizes that "
            "divide a node's allocatable CPU and memory without a rest.",
            ("kubectl describe nodes | grep -A 8 'Allocated resources'",),
            slowed(found.share * found.working),
        )
    ]  # fmt: skip


def _used_while_waiting(timeline: Timeline) -> Floats:
    """Shares of their CPU that the nodes for the runs used, by sample, while at least one pod waited for room."""
    use, pods = node_use(timeline), timeline.stretches(UNSCHEDULABLE)
    waiting = active(floats(pods, "start_s"), floats(pods, "end_s"), floats(use, "at_s")) > 0
    return floats(use, "share")[waiting]
