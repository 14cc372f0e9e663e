"""Nodes run out of CPU: steps get less than they could use."""

from harness.analysis.cost.node_use import node_use
from harness.analysis.timeline import Timeline
from harness.analysis.waits.critical_path import critical_path
from harness.analysis.waits.scheduling_wait import scheduling_wait
from harness.detectors.capability import Capability
from harness.detectors.detector import slowed
from harness.model.findings import Evidence, Finding
from harness.model.phases import NODE_CPU_CORES, RUNNING

NAME = "cpu-starved"
NEEDS = (Capability.NODES, Capability.NODE_CPU)
FAULTS = ("cpu-starved",)

_BUSY = 0.9
_SHARE = 0.25
_SLOWER = 0.5  # of the time on a busy node is lost, as if twice its CPU were wanted: usage shows no more than all of it
_AT_LIMIT, _SHARE_AT_LIMIT = 0.97, 0.1  # a busy node with some CPU left is well used, not starved


def detect(timeline: Timeline) -> list[Finding]:
    """Nodes above 90 % of their allocatable CPU for a quarter of the test or more."""
    use = node_use(timeline)
    use = use[use["at_s"] >= 0]
    if not len(use):
        return []
    busy = float((use["share"] > _BUSY).mean())
    if busy < _SHARE or float((use["share"] > _AT_LIMIT).mean()) < _SHARE_AT_LIMIT:
        return []
    hot = sorted(set(use["node"][use["share"] > _BUSY]))
    return [
        Finding(
            NAME,
            f"Nodes were out of CPU for {busy:.0%} of the time: steps run slower than they could",
            0.85,
            (
                Evidence(
                    f"{busy:.0%} of the node CPU samples are above {_BUSY:.0%}",
                    busy, "share", "samples", f"metric = {NODE_CPU_CORES}",
                ),
                Evidence(f"{len(hot)} nodes were affected: {', '.join(hot[:6])}", float(len(hot)), "nodes", "samples"),
            ),
            "Raise the steps' CPU requests to their actual usage, so that fewer share a node, or use machines with "
            "more CPUs.",
            ("kubectl top nodes", f"kubectl top pods -n {timeline.namespace} --sort-by=cpu"),
            slowed(_SLOWER * busy * (critical_path(timeline).shares[RUNNING] + scheduling_wait(timeline).share)),
        )
    ]  # fmt: skip
