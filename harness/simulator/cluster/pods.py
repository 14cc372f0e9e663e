"""What a pod asks for, and a pod."""

from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from harness.simulator.cluster.nodes import Node
    from harness.simulator.stations import Job, SharedCapacity


class Requirement(NamedTuple):
    """One expression of a node selector or of a required node affinity."""

    key: str
    operator: str  # In, NotIn, Exists, DoesNotExist, Gt, Lt
    values: tuple[str, ...] = ()

    def met_by(self, labels: Mapping[str, str]) -> bool:
        """Whether a node with these labels will do."""
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
    """Which taints a pod puts up with. An empty `key` with ``Exists`` is every taint, an empty `effect` any effect."""

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
    """Everything the scheduler looks at. Pods of equal shape are interchangeable to it."""

    cpu: int = 0  # requested, in thousandths of a core
    memory: int = 0  # bytes
    gpu: int = 0
    requirements: tuple[Requirement, ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    priority: int = 0  # the value of its PriorityClass; pods of lower priority make way for it


class Change(StrEnum):
    """What happened to a pod, as witnesses are told."""

    __hash__ = str.__hash__  # Enum's own is slow, and these are looked up with every change of every pod

    REFUSED = "refused"  # by a quota: the pod does not exist
    CREATED = "created"
    UNSCHEDULABLE = "unschedulable"
    SCHEDULED = "scheduled"
    PULLING = "pulling"
    PULLED = "pulled"
    STARTED = "started"
    MAIN_ENDED = "main ended"
    OVER = "over"
    SCALE_UP = "scale up"
    NO_SCALE_UP = "no scale up"
    PREEMPTED = "preempted"
    TERMINATING = "terminating"
    LABELLED = "labelled"
    GONE = "gone"


_NO_LABELS: Mapping[str, str] = MappingProxyType({})


class Pod:
    """A pod, from its creation to its end. Instants are seconds of simulated time; none is "not yet".

    Attributes:
        owner: what made it (a workflow); witnesses read names and labels from it.
        index: which node of its owner's graph it is.
        role: ``dag-driver``, ``container-driver``, ``executor``, ``importer``.
        task: the step's name in the pipeline, "" for the root driver.
        path: where it stands in its workflow (with the workflow's name before it, Argo's node name).
        images: of its containers; the first one is the main container's.
        on_running: called when the main container runs; calls `Kubelet.end_main` and `Kubelet.finish` in its turn.
        on_over: called once, when the pod is over or lost.
    """

    __slots__ = (
        "attempts",
        "created",
        "deleting",
        "exit_code",
        "finished",
        "grace_s",
        "images",
        "index",
        "job",
        "labels",
        "leaves",
        "limit_cpu",
        "limit_memory",
        "main_ended",
        "message",
        "name",
        "namespace",
        "node",
        "nominated",
        "on_over",
        "on_running",
        "owner",
        "path",
        "phase",
        "preemptor",
        "pulled",
        "reason",
        "retry_at",
        "role",
        "scale_up",
        "scheduled",
        "shape",
        "started",
        "station",
        "task",
        "unschedulable",
        "usage_cpu",
        "usage_memory",
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
        self.unschedulable: float | None = None  # since when no node fits
        self.scheduled: float | None = None
        self.pulled: float | None = None
        self.started: float | None = None
        self.main_ended: float | None = None
        self.finished: float | None = None
        self.attempts = 0  # to find it a node that were in vain
        self.retry_at = 0.0  # when it may be tried again
        self.deleting: float | None = None
        self.grace_s = 0.0  # between its deletion and its being killed
        self.leaves: float | None = None  # when its deletion is done
        self.preemptor: Pod | None = None  # for whom it had to make way
        self.nominated = ""  # the node on which room is being made for it
        self.node: Node | None = None
        self.exit_code = 0
        self.reason = ""  # of the main container's end
        self.message = ""
        self.limit_cpu = 0  # thousandths of a core; 0 is none
        self.limit_memory = 0
        self.usage_cpu = 0.0  # cores it uses while it computes
        self.usage_memory = 0.0
        self.station: SharedCapacity | None = None  # where its current work is done
        self.job: Job | None = None
        self.scale_up = ""  # which scale-up it triggered
        self.labels = _NO_LABELS  # of its own, besides the owner's

    @property
    def over(self) -> bool:
        """Whether it will do nothing any more."""
        return self.finished is not None
