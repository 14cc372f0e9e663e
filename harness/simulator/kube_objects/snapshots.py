"""Immutable copies of the model's objects for the Kubernetes API, rendered when they are read."""

from collections.abc import Mapping
from hashlib import md5
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

from harness.simulator.cluster import Node, Pod, Shape
from harness.simulator.cluster.kueue import WAITS
from harness.simulator.cluster.objects import DISRUPTED_BY_GC, DISRUPTED_BY_SCHEDULER, Words
from harness.simulator.profile import Pool, Taint
from harness.simulator.workflows.workflow import Workflow

NORMAL, WARNING = "Normal", "Warning"
CLAIM = "PersistentVolumeClaim"
_MAIN: Mapping[str, Any] = MappingProxyType({"name": "main"})  # as Argo names it


class Labels(NamedTuple):
    """A pod's owner as its labels show it: a workflow, a deployment, or a Dask cluster."""

    workflow: str = ""
    run_id: str = ""
    over: bool = False
    app: str = ""
    deployment: str = ""
    template: str = ""  # the hash of the deployment's template
    dask: str = ""  # the cluster's name
    claim: str = ""  # of the volume mounted by the pod
    container: Mapping[str, Any] = _MAIN  # the fields of the main container that the owner sets


def main_container(pod: Pod) -> str:
    """The name of the pod's main container."""
    return str((pod.owner.container if isinstance(pod.owner, Labels) else _MAIN)["name"])


class PodSnapshot(NamedTuple):
    """A pod at one resource version."""

    name: str
    namespace: str
    owner: Labels
    role: str
    task: str
    path: str
    shape: Shape
    images: tuple[str, ...]
    limits: tuple[int, int]  # thousandths of a core, bytes; 0 is none
    phase: str
    created: float
    unschedulable: float | None
    explanation: str
    scheduled: float | None
    node: str
    node_ip: str
    pulled: float | None
    started: float | None
    main_ended: float | None
    finished: float | None
    exit_code: int
    reason: str
    message: str
    wait_error: str  # termination message of the container ``wait``
    deleting: float | None
    grace_s: float
    disrupted: tuple[str, ...]  # reason and message of its disruption
    words: Words | None
    by_kubelet: bool
    nominated: str
    own_labels: tuple[tuple[str, str], ...]
    unreachable: float | None  # since when its node counts as lost
    deadline_s: int  # of the whole pod, seconds; 0 is none

    @property
    def gated(self) -> bool:
        """Kueue has not admitted it yet."""
        return self.words is not None and self.words.message.startswith(WAITS)


class NodeSnapshot(NamedTuple):
    """A node at one resource version."""

    name: str
    number: int
    pool: Pool
    created: float
    ready: float | None
    cordoned: bool
    allocatable: tuple[int, int, int]
    labels: tuple[tuple[str, str], ...]
    taints: tuple[Taint, ...]
    images: tuple[str, ...]
    heard: float  # time of its kubelet's last report
    unreachable: float | None  # since when it counts as lost
    words: Words | None  # what it states in addition to its usual conditions


class Subject(NamedTuple):
    """The object that an event is about."""

    kind: str
    namespace: str  # of the event; those about nodes are in "default"
    name: str
    uid: str


class Worded(NamedTuple):
    """The content of an event, without its object."""

    reason: str
    message: str
    component: str
    type: str = NORMAL
    field: str = ""
    precise: bool = False  # with a timestamp in microseconds, as from the scheduler


class EventSnapshot(NamedTuple):
    """A Kubernetes event. `host` is the node, for events from a kubelet; it happened `times` times since `first`."""

    name: str
    about: Subject
    what: Worded
    host: str
    at: float
    times: int
    first: float
    version: int  # the store's, when it was written
    written: float
    annotations: Mapping[str, str] = MappingProxyType({})


def uid(*parts: str) -> str:
    """A UUID derived from the parts."""
    return str(UUID(bytes=md5("/".join(parts).encode(), usedforsecurity=False).digest(), version=4))


def metadata(kind: str, name: str, created: str, namespace: str = "", **more: Any) -> dict[str, Any]:
    """The metadata of an object, with `more` fields. `created` is a timestamp, `namespace` "" for the cluster scope."""
    place = {"namespace": namespace} if namespace else {}
    its = uid(kind, namespace, name) if namespace else uid(kind, name)
    return {"name": name, **place, "uid": its, "creationTimestamp": created, **more}


def pod_uid_of(namespace: str, name: str, created: float) -> str:
    """A pod's UID, different for a later pod of the same name."""
    return uid("pod", namespace, name, repr(created))


def address(index: int) -> str:
    """The IP address of the node with this index."""
    return f"10.224.{index // 250}.{index % 250 + 4}"


def pod_snapshot(pod: Pod, explanation: str) -> PodSnapshot:
    """A copy of the pod's current state."""
    owner = pod.owner
    if isinstance(owner, Workflow):
        labels = Labels(owner.name, owner.run_id, owner.finished is not None or pod.finished is not None)
        path = f"{owner.name}{pod.path}"
    else:
        labels = owner if isinstance(owner, Labels) else Labels()
        path = pod.path
    if pod.words is not None and pod.words.about == CLAIM:
        labels = labels._replace(claim=claim_of(pod))
    node = pod.node
    return PodSnapshot(
        pod.name, pod.namespace, labels, pod.role, pod.task, path, pod.shape, pod.images,
        (pod.limit_cpu, pod.limit_memory), pod.phase, pod.created, pod.unschedulable, explanation, pod.scheduled,
        node.name if node is not None else "", address(node.index) if node is not None else "", pod.pulled, pod.started,
        pod.main_ended, pod.finished, pod.exit_code, pod.reason, pod.message, pod.wait_error, pod.deleting,
        pod.grace_s, _disrupted(pod), pod.words, pod.by_kubelet, pod.nominated, tuple(pod.labels.items()),
        node.unreachable if node is not None else None, pod.deadline_s,
    )  # fmt: skip


def claim_of(pod: Pod) -> str:
    """The name of the claim that is stated about, which the pod mounts."""
    return f"{pod.name}-data"


def _disrupted(pod: Pod) -> tuple[str, ...]:
    if pod.preemptor is not None:
        return DISRUPTED_BY_SCHEDULER
    if pod.disrupted:
        return pod.disrupted
    had_ended = pod.deleting is None or (pod.finished is not None and pod.finished < pod.deleting)
    return DISRUPTED_BY_GC if not had_ended and pod.node is not None and pod.node.gone is not None else ()


def node_snapshot(node: Node, now: float) -> NodeSnapshot:
    """A copy of the node's current state."""
    return NodeSnapshot(
        node.name, node.index, node.pool, node.created, node.ready, node.cordoned, (node.cpu, node.memory, node.gpu),
        tuple(node.labels.items()), node.taints, tuple(node.images), now if node.lost is None else node.lost,
        node.unreachable, node.words,
    )  # fmt: skip
