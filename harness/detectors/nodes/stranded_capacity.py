"""Steps request more than they use: pods wait for nodes that lack a resource by requests, and hardly use it."""

from harness.analysis.waits.lacking import EPHEMERAL, Lacking, amount_of, lacking
from harness.analysis.waits.scheduling_wait import SchedulingWait, scheduling_wait
from harness.detectors.detector import CannotJudgeError, Capability, Evidence, Finding, Timeline, broke, slowed
from harness.detectors.nodes.node_waits import SHARE
from harness.model.phases import NODE_CPU_CORES, NODE_MEMORY_BYTES, REQUESTED_EPHEMERAL_BYTES, UNSCHEDULABLE

NAME = "stranded-capacity"
NEEDS = (Capability.RUNS, Capability.PODS, Capability.NODES, Capability.NODE_CPU)
OVERSTATED_EARLY = True

_MAX_SHARE_USED = 0.6  # of what is requested is used
_MAX_SHARE_REQUESTED = 0.5  # of the other resources: they are not used more
_MAX_SHARE_FIXED = 0.5  # of the nodes lack GPUs or places: smaller requests would help the others only
_LOCAL_DISK = "Insufficient ephemeral-storage"
_NAMES = {"cpu": "CPU", "memory": "memory"}
_METRICS = {"cpu": NODE_CPU_CORES, "memory": NODE_MEMORY_BYTES}


def detect(timeline: Timeline) -> list[Finding]:
    """What the nodes lacked while pods waited, by requests against allocatable, and how much of it they used."""
    wait = scheduling_wait(timeline)
    if wait.share < SHARE:
        return []
    found = lacking(timeline)
    if found is None:
        raise CannotJudgeError("pods waited for a node, and what the steps request was not observed")
    if wait.lacks and wait.lacks[0][0] == _LOCAL_DISK and not found.shares.get(EPHEMERAL):
        raise CannotJudgeError("nodes lacked ephemeral storage, as the scheduler says; the observed requests don't")
    if found.too_large and not wait.grew:
        return [_too_large(found, wait.share)]
    resource = found.scarcest
    if resource == EPHEMERAL:
        return _by_disk(found, wait)
    if resource not in _NAMES or found.fixed >= _MAX_SHARE_FIXED:
        return []
    if resource not in found.used:
        raise CannotJudgeError(f"nodes lacked {_NAMES[resource]}, and how much of it they used was not observed")
    if found.used[resource] >= _MAX_SHARE_USED * found.held[resource]:
        return []
    return [_finding(found, wait)]


def _finding(found: Lacking, wait: SchedulingWait) -> Finding:
    used, name = found.used[found.scarcest], _NAMES[found.scarcest]
    return Finding(
        NAME,
        f"Capacity is stranded: pods waited for a node while the nodes used {used:.0%} of their {name}",
        0.85,
        _evidence(found, wait.share),
        "Lower the steps' requests to their actual usage (see pipeswarm resources for this run), in sizes that "
        "divide a node's allocatable CPU and memory evenly.",
        ("kubectl describe nodes | grep -A 8 'Allocated resources'",),
        slowed(wait.share * (1 - used / found.held[found.scarcest])),  # as many more pods fit at once
    )


def _by_disk(found: Lacking, wait: SchedulingWait) -> list[Finding]:
    """Ephemeral storage is requested in full, and most of the CPU and memory is not: its use is not observed."""
    others = {name: found.held[key] for key, name in _NAMES.items() if key in found.held}
    most, names = max(others.values(), default=0.0), " and ".join(others)
    if found.fixed >= _MAX_SHARE_FIXED or most >= _MAX_SHARE_REQUESTED:
        return []
    lacked, held = found.shares[EPHEMERAL], found.held[EPHEMERAL]
    return [
        Finding(
            NAME,
            f"Capacity is stranded: pods waited for ephemeral storage while no more than {most:.0%} of the nodes' "
            f"{names} was requested",
            0.85,
            (
                Evidence(
                    f"{wait.share:.1%} of all run time was spent waiting for a node; {lacked:.0%} of the nodes that "
                    "could take the waiting pods lacked ephemeral storage by requests",
                    wait.share, "share", "spans", f"phase = {UNSCHEDULABLE}",
                ),
                Evidence(
                    f"meanwhile their pods requested {held:.0%} of these nodes' ephemeral storage (mean); how much "
                    "they wrote was not observed",
                    held, "share", "samples", f"metric = {REQUESTED_EPHEMERAL_BYTES}",
                ),
            ),
            "Lower the steps' requests of ephemeral storage to what they write, or give the nodes larger disks.",
            ("kubectl describe nodes | grep -A 8 'Allocated resources'",),
            slowed(wait.share * (1 - most)),  # as many more pods fit until another resource is requested in full
        )
    ]  # fmt: skip


def _too_large(found: Lacking, share: float) -> Finding:
    name, (wanted, most) = next(iter(found.too_large.items()))
    asked = f"{amount_of(name, wanted)}, and no node has more than {amount_of(name, most)}"
    return Finding(
        NAME,
        f"Pods of {found.task} fit on no node, however many there are: they request {asked}",
        0.95,
        (
            Evidence(f"{found.task} requests {asked} to allocate", wanted, "", "samples", "metric ~ requested"),
            Evidence(
                f"{share:.1%} of all run time was spent waiting for a node",
                share, "share", "spans", f"phase = {UNSCHEDULABLE}",
            ),
        ),
        "Lower the step's request below what a node can allocate (less than the machine has: the node keeps a part), "
        "or add a pool of larger machines.",
        ("kubectl describe nodes | grep -A 8 Allocatable",),
        broke(share),
    )  # fmt: skip


def _evidence(found: Lacking, share: float) -> tuple[Evidence, ...]:
    resource = found.scarcest
    name, lacked, used, held = _NAMES[resource], found.shares[resource], found.used[resource], found.held[resource]
    return (
        Evidence(
            f"{share:.1%} of all run time was spent waiting for a node; {lacked:.0%} of the nodes that could take the "
            f"waiting pods lacked {name} by requests",
            share, "share", "spans", f"phase = {UNSCHEDULABLE}",
        ),
        Evidence(
            f"meanwhile their pods requested {held:.0%} of these nodes' {name} and used {used:.0%} (means)",
            used, "share", "samples", f"metric = {_METRICS[resource]}",
        ),
    )  # fmt: skip
