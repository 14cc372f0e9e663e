"""Pods and nodes; each knows the other."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from harness.simulator.cluster.shapes import HOSTNAME, Shape, allocatable, labels_of, taints_of
from harness.simulator.engine.events import EventLoop
from harness.simulator.engine.queues import Job, ProcessorSharing
from harness.simulator.profile import MeasuredPod, Pool, Taint

# Reason and message of the condition DisruptionTarget of a pod that is taken from its node.
DISRUPTED_BY_SCHEDULER = ("PreemptionByScheduler", "default-scheduler: preempting to accommodate a higher priority pod")
DISRUPTED_BY_EVICTION = "EvictionByEvictionAPI", "Eviction API: evicting"
DISRUPTED_BY_TAINT = "DeletionByTaintManager", "Taint manager: deleting due to NoExecute taint"
DISRUPTED_BY_SHUTDOWN = "TerminationByKubelet", "Pod was terminated in response to imminent node shutdown."
DISRUPTED_BY_GC = "DeletionByPodGC", "PodGC: node no longer exists"
_ROLES_OF_DRIVERS = frozenset({"dag-driver", "container-driver", "importer"})
_NO_LABELS: Mapping[str, str] = MappingProxyType({})


class Words(NamedTuple):
    """What a component states about a pod: as an event about an object, and as what a container waits for."""

    source: str
    reason: str
    message: str
    waiting: str = ""  # the reason in the container's state; "" where that says nothing
    about: str = "Pod"  # kind of the object


class Pod:
    """A pod, from its creation to its end. Instants are seconds of simulated time; none means "not yet".

    Attributes:
        owner: what created it (a workflow); listeners read names and labels from it.
        index: which node of its owner's graph it is.
        role: ``dag-driver``, ``container-driver``, ``executor``, ``importer``, ``step``.
        task: the step's name in the pipeline, "" for the root driver.
        path: its position in the workflow; after the workflow's name it is Argo's node name.
        images: images of its containers, the main container's first.
        on_running: called when the main container starts; later calls `Kubelet.end_main` and `Kubelet.finish`.
        on_over: called once, when the pod has ended or was lost.
    """

    __slots__ = (
        "attempts", "by_kubelet", "created", "deadline_s", "deleting", "disrupted", "exit_code", "explanation",
        "finished", "grace_s", "images",
        "index", "job", "labels", "launch", "leaves", "limit_cpu", "limit_memory", "main_ended", "measured",
        "message", "name", "namespace", "node", "nominated", "on_over", "on_running", "owner", "path", "phase",
        "preemptor", "pull_error", "pulled", "reason", "retry_at", "role", "scale_up", "scheduled", "shape", "started",
        "station", "task", "unschedulable", "usage_cpu", "usage_memory", "wait_error", "words", "worked_s",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        namespace: str,
        shape: Shape,
        images: tuple[str, ...],
        *,
        on_running: "Callable[[Pod], None] | None" = None,
        on_over: "Callable[[Pod], None] | None" = None,
        owner: object = None,
        index: int = 0,
        role: str = "",
        task: str = "",
        path: str = "",
    ) -> None:
        self.name = name
        self.namespace = namespace
        self.shape = shape
        self.images = images
        self.on_running = on_running
        self.on_over = on_over
        self.owner = owner
        self.index = index
        self.role = role
        self.task = task
        self.path = path
        self.phase = "Pending"
        self.created = 0.0
        self.unschedulable: float | None = None  # since when it has been unschedulable
        self.scheduled: float | None = None
        self.pulled: float | None = None
        self.measured: MeasuredPod | None = None  # what a recorded run showed of such pods
        self.deadline_s = 0  # longest time on its node; 0 is none
        self.started: float | None = None
        self.main_ended: float | None = None
        self.finished: float | None = None
        self.attempts = 0  # failed attempts to schedule it
        self.retry_at = 0.0  # not before then is scheduling retried
        self.deleting: float | None = None
        self.grace_s = 0.0  # from its deletion to SIGKILL
        self.leaves: float | None = None  # when its deletion is complete
        self.disrupted: tuple[str, ...] = ()  # reason and message of its disruption, where its end does not show them
        self.preemptor: Pod | None = None  # the pod that preempted it
        self.nominated = ""  # the node where pods are being preempted for it
        self.node: Node | None = None
        self.exit_code = 0
        self.reason = ""  # of the main container's termination
        self.by_kubelet = False  # its kubelet ended it: the reason is the pod's own
        self.message = ""
        self.launch: object = None  # what the program around a step's command did
        self.wait_error = ""  # the termination message of the container beside it; "" when that ended well
        self.limit_cpu = 0  # thousandths of a core; 0 is none
        self.limit_memory = 0
        self.usage_cpu = 0.0  # cores used while computing
        self.usage_memory = 0.0
        self.station: ProcessorSharing | None = None  # the queue that its current work is in
        self.job: Job | None = None
        self.worked_s = 0.0  # of its computation, when that was stopped; as long as it takes on an idle machine
        self.scale_up = ""  # the scale-up that it triggered
        self.words: Words | None = None  # what is stated about it at present
        self.explanation = ""  # what the scheduler says about it, where that is a fault's
        self.labels = _NO_LABELS  # its own, besides those from the owner

    @property
    def kind(self) -> str:
        """The task as observers name it: a driver's ends in ``-driver``."""
        return f"{self.task or 'root'}-driver" if self.role in _ROLES_OF_DRIVERS else self.task

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self.finished is not None


class Node:
    """A machine. Free amounts are whole thousandths of a core and bytes, which avoids rounding errors.

    `free` is the free share of the cores plus the free share of the memory.
    """

    __slots__ = (
        "complete", "cordoned", "cpu", "cpu_free", "created", "deallocated", "free", "gone", "gpu", "gpu_free",
        "idle_since", "images", "index", "labels", "lost", "memory", "memory_free", "name", "pods",
        "pods_free", "pool", "processor", "pull_free", "ready", "special", "taints", "unreachable", "version", "words",
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
        self.lost: float | None = None  # when its machine died, of which the cluster learns later
        self.unreachable: float | None = None  # since when it counts as lost
        self.deallocated = False  # its machine is off but not gone
        self.gone: float | None = None  # when its object was deleted
        self.cordoned = False
        self.special = False  # its labels or taints differ from its pool's
        self.idle_since: float | None = None
        self.words: Words | None = None  # its kubelet's, in addition to its usual conditions
        self.pods: dict[str, Pod] = {}
        self.images: dict[str, float] = {}  # by name: when its pull is complete
        self.complete: dict[tuple[str, ...], float] = {}  # by a pod's images: when all pulls are complete
        self.pull_free = 0.0  # when the running pulls are complete
        self.processor = ProcessorSharing(loop, pool.cpu)
        self.version = 0  # counts changes of the free amounts
        self.free = 0.0
        self._reserve(Shape(), 0)

    def fits(self, shape: Shape) -> bool:
        """Whether the free resources suffice, regardless of labels and taints."""
        return (
            self.cpu_free >= shape.cpu
            and self.memory_free >= shape.memory
            and self.pods_free > 0
            and self.gpu_free >= shape.gpu
        )

    def room(self, shape: Shape) -> int:
        """How many such pods fit into the free resources."""
        room = self.pods_free
        if shape.cpu:
            room = min(room, self.cpu_free // shape.cpu)
        if shape.memory:
            room = min(room, self.memory_free // shape.memory)
        if shape.gpu:
            room = min(room, self.gpu_free // shape.gpu)
        return room

    @property
    def equipped(self) -> bool:
        """Whether it is ready with all that its pool promises."""
        return self.ready is not None and self.gpu == self.pool.gpu

    def lack_drivers(self) -> None:
        """Its GPUs can't be allocated yet."""
        self.gpu = self.gpu_free = 0

    def install_drivers(self) -> None:
        """From now on its GPUs can be allocated."""
        self.gpu = self.gpu_free = self.pool.gpu

    def take(self, pod: Pod) -> None:
        """Reserve the pod's requests."""
        self._reserve(pod.shape, 1)
        self.pods[pod.name] = pod
        self.idle_since = None
        roomy = self.cpu_free >= 0 and self.memory_free >= 0 and self.gpu_free >= 0 and self.pods_free >= 0
        assert roomy, f"{self.name} is overcommitted"

    def give_back(self, pod: Pod) -> None:
        """Free the pod's requests."""
        self._reserve(pod.shape, -1)
        del self.pods[pod.name]

    def _reserve(self, shape: Shape, count: int) -> None:
        """Take a multiple of the shape's requests from what is free."""
        cpu, memory, gpu, *_ = shape
        self.cpu_free -= count * cpu
        self.memory_free -= count * memory
        self.gpu_free -= count * gpu
        self.pods_free -= count
        self.free = self.cpu_free / (self.cpu or 1) + self.memory_free / (self.memory or 1)

    @property
    def schedulable(self) -> bool:
        """Whether the node is ready and not cordoned."""
        return self.ready is not None and self.gone is None and not self.cordoned
