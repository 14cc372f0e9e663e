"""A node pool at one instant: what trials on it and cordoning need to know."""

from dataclasses import dataclass

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
