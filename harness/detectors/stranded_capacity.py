"""Steps request more than they use: pods wait for nodes while the nodes are mostly idle."""

import numpy as np

from harness.analysis.cost.node_use import node_use
from harness.analysis.timeline import Floats, Timeline, floats
from harness.analysis.timeline.curves import active
from harness.analysis.waits.scheduling_wait import scheduling_wait
from harness.detectors.capability import Capability
from harness.detectors.detector import CannotJudgeError, slowed
from harness.detectors.node_waits import SHARE, certainty
from harness.model.findings import Evidence, Finding
from harness.model.phases import NODE_CPU_CORES, UNSCHEDULABLE

NAME = "stranded-capacity"
NEEDS = (Capability.RUNS, Capability.PODS, Capability.NODES, Capability.NODE_CPU)
NOT_INJECTED = "it is a property of the pipeline's requests"

_BUSY = 0.35
_LEAST = 5  # samples while pods waited


def detect(timeline: Timeline) -> list[Finding]:
    """The nodes' CPU usage, taken only while pods waited for a node."""
    wait = scheduling_wait(timeline)
    if wait.share < SHARE:
        return []
    used = _used_while_waiting(timeline)
    if used.size < _LEAST:
        raise CannotJudgeError("the nodes' CPU usage was hardly observed while pods waited for a node")
    busy = float(np.mean(used))
    if busy >= _BUSY:
        return []
    resource = wait.lacks[0][0].removeprefix("Insufficient ") if wait.lacks else "capacity"
    return [
        Finding(
            NAME,
            f"Capacity is stranded: pods waited for a node while the nodes used {busy:.0%} of their CPU",
            certainty(0.88, wait),
            (
                Evidence(
                    f"{wait.share:.1%} of all run time was spent waiting for a node; by requests, the nodes were "
                    f"out of {resource}",
                    wait.share, "share", "spans", f"phase = {UNSCHEDULABLE}",
                ),
                Evidence(
                    f"CPU usage meanwhile: {busy:.0%} (mean of {used.size:,} samples, p95 "
                    f"{float(np.quantile(used, 0.95)):.0%})",
                    busy, "share", "samples", f"metric = {NODE_CPU_CORES}",
                ),
            ),
            "Lower the steps' requests to their actual usage (see pipeswarm resources for this run), in sizes that "
            "divide a node's allocatable CPU and memory evenly.",
            ("kubectl describe nodes | grep -A 8 'Allocated resources'",),
            slowed(wait.share * wait.working),
        )
    ]  # fmt: skip


def _used_while_waiting(timeline: Timeline) -> Floats:
    """The runs' nodes' CPU usage as a share, by sample, while at least one pod waited for a node."""
    use, pods = node_use(timeline), timeline.stretches(UNSCHEDULABLE)
    waiting = active(floats(pods, "start_s"), floats(pods, "end_s"), floats(use, "at_s")) > 0
    return floats(use, "share")[waiting]
