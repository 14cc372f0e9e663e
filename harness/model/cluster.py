"""Nodes and pods at one instant: what trials on a pool, cordoning and evictions need to know."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from harness.model.records import Node


@dataclass(frozen=True, slots=True)
class PoolNode:
    """A machine; its `node.ready_at` is none while it is not ready."""

    node: Node
    tainted: bool
    cordoned: bool


@dataclass(frozen=True, slots=True)
class PoolPod:
    """A pod.

    Attributes:
        name: of the pod.
        run: the platform's id of the run that it works for; "" for a daemon or another workload.
        task: the step's name in the pipeline.
        node: where it was scheduled; "" before.
        live: pending or running.
        cpu: cores that it requests.
        memory: bytes that it requests.
        unschedulable: the scheduler's message while the pod finds no node; else "".
    """

    name: str
    run: str
    task: str
    node: str
    live: bool
    cpu: float
    memory: float
    unschedulable: str = ""


@dataclass(frozen=True, slots=True)
class CandidatePod:
    """A pod that has not ended, and may be evicted.

    Attributes:
        name: of the pod.
        namespace: of the pod.
        node: where it is; "" before it is scheduled.
        run: the platform's id of the run that it works for; "" for none.
        everywhere: it belongs to the node, as pods of DaemonSets and the kubelet's own do.
    """

    name: str
    namespace: str
    node: str
    run: str
    everywhere: bool


@dataclass(frozen=True, slots=True)
class CandidateNode:
    """A node that may be evicted; `control_plane` says that it runs the cluster itself."""

    name: str
    control_plane: bool


@dataclass(frozen=True, slots=True)
class NodeOffer:
    """What a node offers to pods, and to which.

    Attributes:
        pool: that the node is of.
        labels: of the node.
        taints: key, value and effect of each.
        cpu: cores for pods.
        memory: bytes for pods.
        gpus: devices for pods.
        virtual: it is no machine, and takes pods of any size.
    """

    pool: str
    labels: Mapping[str, str]
    taints: tuple[tuple[str, str, str], ...]
    cpu: float
    memory: float
    gpus: float
    virtual: bool = False


class Requirement(NamedTuple):
    """One expression of a label selector or of a node affinity."""

    key: str
    operator: str  # In, NotIn, Exists, DoesNotExist, Gt, Lt
    values: tuple[str, ...] = ()

    def met_by(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels meets the requirement."""
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
