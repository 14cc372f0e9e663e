"""What a pod requests, what the machines of a pool offer, and whether they match."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from harness.model.cluster import Requirement
from harness.model.units import parse_quantity
from harness.simulator.profile import Pool, Taint

HOSTNAME = "kubernetes.io/hostname"


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
    selector: tuple[tuple[str, str], ...] = ()  # labels that the node has
    tolerations: tuple[Toleration, ...] = ()
    priority: int = 0  # the value of its PriorityClass; it preempts pods of lower priority
    affinity: tuple[tuple[Requirement, ...], ...] = ()  # alternatives; the node meets all of one

    @property
    def by_host(self) -> bool:
        """Whether such a pod wants some nodes by name."""
        keys = {key for key, _ in self.selector} | {each.key for term in self.affinity for each in term}
        return HOSTNAME in keys


def allocatable(pool: Pool) -> tuple[int, int, int]:
    """The allocatable resources of one machine, once its drivers are installed: thousandths of a core, bytes, GPUs."""
    cpu = round((pool.cpu - pool.reserved_cpu) * 1000)
    return max(0, cpu), max(0, int(pool.memory - pool.reserved_memory)), pool.gpu


def amounts_of(given: Mapping[str, Any]) -> tuple[int, int, int]:
    """Requests or limits of a container: thousandths of a core, bytes, GPUs.

    Raises:
        ConfigError: a quantity can't be read.
    """
    cpu, memory, gpu = (parse_quantity(str(given.get(key, 0))) for key in ("cpu", "memory", "nvidia.com/gpu"))
    return round(cpu * 1000), int(memory), int(gpu)


def tolerations_of(given: Iterable[Mapping[str, Any]]) -> tuple[Toleration, ...]:
    """The tolerations in a pod's specification."""
    fields = {"key": "", "operator": "Equal", "value": "", "effect": ""}
    return tuple(Toleration(*(each.get(name, default) for name, default in fields.items())) for each in given)


def total_of(resources: Iterable[Mapping[str, Any]], kind: str = "requests") -> tuple[int, int, int]:
    """Requests or limits of containers that run at the same time; limits replace missing requests."""
    amounts = [amounts_of({**(resource.get("limits") or {}), **(resource.get(kind) or {})}) for resource in resources]
    cpu, memory, gpu = (sum(amount[k] for amount in amounts) for k in range(3))
    return cpu, memory, gpu


def shape_of(spec: Mapping[str, Any], resources: Iterable[Mapping[str, Any]], priorities: Mapping[str, int]) -> Shape:
    """What a pod with this specification requests; `resources` are its containers', `priorities` those of classes."""
    return Shape(
        *total_of(resources),
        tuple((str(key), str(value)) for key, value in (spec.get("nodeSelector") or {}).items()),
        tolerations_of(spec.get("tolerations") or ()),
        priorities.get(str(spec.get("priorityClassName") or ""), 0),
    )


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
        key, value = pool.eviction.of_cloud.label
        labels[key] = value
    if pool.gpu:
        labels.setdefault("accelerator", "nvidia")
    return labels


def taints_of(pool: Pool) -> tuple[Taint, ...]:
    """A pool's taints; spot pools carry the one that their cloud gives them, if it does."""
    cloud = pool.eviction.of_cloud
    key, value = cloud.label
    if pool.spot and cloud.tainted and not any(taint.key == key for taint in pool.taints):
        return (*pool.taints, Taint(key, value, "NoSchedule"))
    return pool.taints


def admits(labels: Mapping[str, str], taints: tuple[Taint, ...], shape: Shape) -> bool:
    """Whether a node with these labels and taints accepts such pods, regardless of free resources."""
    if untolerated(taints, shape) or any(labels.get(key) != value for key, value in shape.selector):
        return False
    return not shape.affinity or any(all(each.met_by(labels) for each in term) for term in shape.affinity)


def untolerated(taints: tuple[Taint, ...], shape: Shape) -> Taint | None:
    """The first taint that such pods do not tolerate; none if they tolerate all."""
    for taint in taints:
        if taint.effect == "PreferNoSchedule":
            continue
        if not any(toleration.covers(taint.key, taint.value, taint.effect) for toleration in shape.tolerations):
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
