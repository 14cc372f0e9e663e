"""Preemption: which pods of lower priority are evicted for an unschedulable pod, as kube-scheduler chooses them.

The rules are those of its DefaultPreemption plugin (pkg/scheduler/framework/preemption): as few victims as
possible, higher priorities spared first; then the node with the least important victims.
"""

from collections.abc import Callable, Iterable

from harness.simulator.cluster.objects import Node, Pod
from harness.simulator.cluster.shapes import Shape

_OFFSET = 2**31  # makes every further victim count as harm, even with a negative priority


def choose(
    nodes: Iterable[Node], pod: Pod, reserved: Callable[[Node], Iterable[Shape]]
) -> tuple[Node, list[Pod]] | None:
    """The node and its victims; none where preemption does not help.

    Args:
        nodes: nodes that would accept the pod if they were empty.
        pod: the pod, which fits on none of them.
        reserved: shapes nominated to a node earlier.
    """
    candidates = [(node, victims) for node in nodes if (victims := _victims(node, pod, reserved(node)))]
    return min(candidates, key=lambda candidate: _harm(*candidate), default=None)


def _victims(node: Node, pod: Pod, reserved: Iterable[Shape]) -> list[Pod]:
    """The victims on a node; empty if even evicting all lower priorities is not enough."""
    shape = pod.shape
    lower = [each for each in node.pods.values() if each.shape.priority < shape.priority]
    room = _Room(node)
    for kept in reserved:
        room.take(kept)
    for each in lower:
        room.give(each.shape)
    if not room.fits(shape):
        return []
    room.take(shape)
    victims = []
    for each in sorted(lower, key=lambda each: (-each.shape.priority, _begun(each))):
        if room.fits(each.shape):
            room.take(each.shape)
        else:
            victims.append(each)
    return victims


def _harm(node: Node, victims: list[Pod]) -> tuple[int, int, int, float, int]:
    highest = max(victim.shape.priority for victim in victims)
    earliest = min(_begun(victim) for victim in victims if victim.shape.priority == highest)
    return highest, sum(victim.shape.priority + _OFFSET for victim in victims), len(victims), -earliest, node.index


def _begun(pod: Pod) -> float:
    return pod.scheduled if pod.scheduled is not None else pod.created


class _Room:
    """A scratch copy of a node's free resources."""

    def __init__(self, node: Node) -> None:
        self._free = [node.cpu_free, node.memory_free, node.gpu_free, node.pods_free]

    def fits(self, shape: Shape) -> bool:
        wanted = (shape.cpu, shape.memory, shape.gpu, 1)
        return all(free >= want for free, want in zip(self._free, wanted, strict=True))

    def take(self, shape: Shape) -> None:
        self._change(shape, -1)

    def give(self, shape: Shape) -> None:
        self._change(shape, 1)

    def _change(self, shape: Shape, sign: int) -> None:
        wanted = (shape.cpu, shape.memory, shape.gpu, 1)
        self._free = [free + sign * want for free, want in zip(self._free, wanted, strict=True)]


def fits_beside(node: Node, shape: Shape, reserved: Iterable[Shape]) -> bool:
    """Whether such a pod fits in addition to the reserved shapes."""
    room = _Room(node)
    for each in reserved:
        room.take(each)
    return room.fits(shape)
