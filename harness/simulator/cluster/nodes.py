"""Machines, and what is free on them."""

from collections.abc import Mapping

from harness.simulator.cluster.pods import Pod, Shape
from harness.simulator.events import EventLoop
from harness.simulator.profile import Pool, Taint
from harness.simulator.stations import SharedCapacity

HOSTNAME = "kubernetes.io/hostname"
SPOT = "kubernetes.azure.com/scalesetpriority"


class Node:
    """A machine. Free amounts are whole thousandths of a core and bytes, so that nothing is lost to rounding.

    `free` is the share of the cores plus the share of the memory that is free.
    """

    __slots__ = (
        "complete", "cordoned", "cpu", "cpu_free", "created", "free", "gone", "gpu", "gpu_free", "idle_since",
        "images", "index", "labels", "memory", "memory_free", "name", "pods", "pods_free", "pool",
        "processor", "pull_free", "ready", "special", "taints", "version",
    )  # fmt: skip

    def __init__(self, name: str, index: int, pool: Pool, loop: EventLoop) -> None:
        self.name = name
        self.index = index
        self.pool = pool
        self.cpu, self.memory, self.gpu = allocatable(pool)
        self.cpu_free, self.memory_free, self.gpu_free, self.pods_free = self.cpu, self.memory, self.gpu, pool.pods
        self.labels: Mapping[str, str] = labels_of(pool) | {HOSTNAME: name}
        self.taints: tuple[Taint, ...] = taints_of(pool)
        self.created = loop.now
        self.ready: float | None = None
        self.gone: float | None = None
        self.cordoned = False
        self.special = False  # its labels or taints are no longer its pool's
        self.idle_since: float | None = None
        self.pods: dict[str, Pod] = {}
        self.images: dict[str, float] = {}  # name → from when on it is there
        self.complete: dict[tuple[str, ...], float] = {}  # images of a pod → from when on all of them are there
        self.pull_free = 0.0  # when the pulls under way are over
        self.processor = SharedCapacity(loop, pool.cpu)
        self.version = 0  # counts changes of what is free
        self._count_free()

    def fits(self, shape: Shape) -> bool:
        """Whether there is room; labels and taints are another question."""
        return (
            self.cpu_free >= shape.cpu
            and self.memory_free >= shape.memory
            and self.pods_free > 0
            and self.gpu_free >= shape.gpu
        )

    def room(self, shape: Shape) -> int:
        """How many such pods fit."""
        room = self.pods_free
        if shape.cpu:
            room = min(room, self.cpu_free // shape.cpu)
        if shape.memory:
            room = min(room, self.memory_free // shape.memory)
        if shape.gpu:
            room = min(room, self.gpu_free // shape.gpu)
        return room

    def take(self, pod: Pod) -> None:
        """Reserve what the pod requests."""
        shape = pod.shape
        self.cpu_free -= shape.cpu
        self.memory_free -= shape.memory
        self.gpu_free -= shape.gpu
        self.pods_free -= 1
        self.pods[pod.name] = pod
        self.idle_since = None
        self._count_free()
        roomy = self.cpu_free >= 0 and self.memory_free >= 0 and self.gpu_free >= 0 and self.pods_free >= 0
        assert roomy, f"{self.name} is overcommitted"

    def give_back(self, pod: Pod) -> None:
        """Free what the pod requested."""
        shape = pod.shape
        self.cpu_free += shape.cpu
        self.memory_free += shape.memory
        self.gpu_free += shape.gpu
        self.pods_free += 1
        self._count_free()
        del self.pods[pod.name]

    def _count_free(self) -> None:
        self.free = self.cpu_free / (self.cpu or 1) + self.memory_free / (self.memory or 1)

    @property
    def schedulable(self) -> bool:
        """Whether pods may be placed here at all."""
        return self.ready is not None and self.gone is None and not self.cordoned


def allocatable(pool: Pool) -> tuple[int, int, int]:
    """What pods can have of one machine: thousandths of a core, bytes, GPUs."""
    cpu = round((pool.cpu - pool.reserved_cpu) * 1000)
    return max(0, cpu), max(0, int(pool.memory - pool.reserved_memory)), pool.gpu


def labels_of(pool: Pool) -> dict[str, str]:
    """Labels that every node of a pool has, as AKS sets them."""
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
    """Whether a node with these labels and taints accepts such pods, room aside."""
    return not untolerated(taints, shape) and all(each.met_by(labels) for each in shape.requirements)


def untolerated(taints: tuple[Taint, ...], shape: Shape) -> Taint | None:
    """The first taint that keeps such pods away."""
    for taint in taints:
        if taint.effect == "PreferNoSchedule":
            continue
        if not any(each.covers(taint.key, taint.value, taint.effect) for each in shape.tolerations):
            return taint
    return None
