"""What a pod requests, what the machines of a pool offer, and whether they match."""

from collections.abc import Mapping
from typing import NamedTuple

from harness.simulator.profile import Pool, Taint

HOSTNAME = "kubernetes.io/hostname"
SPOT = "kubernetes.azure.com/scalesetpriority"


class Requirement(NamedTuple):
    """One expression of a node selector or of a required node affinity."""

    key: str
    operator: str  # In, NotIn, Exists, DoesNotExist, Gt, Lt
    values: tuple[str, ...] = ()

    def met_by(self, labels: Mapping[str, str]) -> bool:
        """Whether a node with these labels meets the requirement."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt" if value is not None and value.lstrip("-").isdigit():
                bound = int(self.values[0])
                return int(value) > bound if self.operator == "Gt" else int(value) < bound
            case _:
                return False


class Toleration(NamedTuple):
    """Which taints a pod tolerates. An empty `key` with ``Exists`` is every taint, an empty `effect` any effect."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def covers(self, key: str, value: str, effect: str) -> bool:
        """Whether the taint is tolerated."""
        if self.effect not in {"", effect}:
            return False
        if self.operator == "Exists":
            return self.key in {"", key}
        return self.key == key and self.value == value


class Shape(NamedTuple):
    """The part of a pod that the scheduler looks at: pods of equal shape are interchangeable to it."""

    cpu: int = 0  # requested, in thousandths of a core
    memory: int = 0  # bytes
    gpu: int = 0
    requirements: tuple[Requirement, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    priority: int = 0  # the value of its PriorityClass; it preempts pods of lower priority


def allocatable(pool: Pool) -> tuple[int, int, int]:
    """The allocatable resources of one machine: thousandths of a core, bytes, GPUs."""
    cpu = round((pool.cpu - pool.reserved_cpu) * 1000)
    return max(0, cpu), max(0, int(pool.memory - pool.reserved_memory)), pool.gpu


def labels_of(pool: Pool) -> dict[str, str]:
    """The labels of every node of a pool, as AKS sets them."""
    labels = {
        "agentpool": pool.name,
        "kubernetes.azure.com/agentpool": pool.name,
        "node.kubernetes.io/instance-type": pool.instance_type,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        **pool.labels,
    }
    if pool.spot:
        labels[SPOT] = "spot"
    if pool.gpu:
        labels.setdefault("accelerator", "nvidia")
    return labels


def taints_of(pool: Pool) -> tuple[Taint, ...]:
    """A pool's taints; spot pools carry the one that AKS gives them."""
    if pool.spot and not any(taint.key == SPOT for taint in pool.taints):
        return (*pool.taints, Taint(SPOT, "spot", "NoSchedule"))
    return pool.taints


def admits(labels: Mapping[str, str], taints: tuple[Taint, ...], shape: Shape) -> bool:
    """Whether a node with these labels and taints accepts such pods, regardless of free resources."""
    return not untolerated(taints, shape) and all(each.met_by(labels) for each in shape.requirements)


def untolerated(taints: tuple[Taint, ...], shape: Shape) -> Taint | None:
    """The first taint that such pods do not tolerate; none if they tolerate all."""
    for taint in taints:
        if taint.effect == "PreferNoSchedule":
            continue
        if not any(each.covers(taint.key, taint.value, taint.effect) for each in shape.tolerations):
            return taint
    return None


def cores(thousandths: int) -> str:
    """A CPU quantity in canonical form: ``500m``, ``2``."""
    return str(thousandths // 1000) if thousandths % 1000 == 0 else f"{thousandths}m"


def quantity(size: float) -> str:
    """A byte quantity in canonical form: ``20Gi``, ``512Mi``."""
    whole = int(size)
    for unit, factor in (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10)):
        if whole and whole % factor == 0:
            return f"{whole // factor}{unit}"
    return str(whole)
