"""Ranking of nodes by shape: finds the best node for a pod without scanning all nodes."""

from collections import Counter
from collections.abc import Iterable
from heapq import heapify, heappop, heappush

from harness.simulator.cluster.objects import Node
from harness.simulator.cluster.shapes import Shape, admits, untolerated

_MOST_SHAPES = 64
_MOST_CHANGES = 100_000  # log entries kept for shapes that are no longer requested
_NEVER = -1
_UNMATCHED = "didn't match Pod's node affinity/selector"
_Entry = tuple[float, int, int, Node]  # rank, the node's number, its version, the node


class _Ranking:
    """The nodes that accept one shape, best first."""

    __slots__ = ("_by_host", "costs", "heap", "seen", "shape")

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.heap: list[_Entry] = []
        self.seen = _NEVER  # length of the change log when last updated
        self._by_host = shape.by_host
        self.costs: dict[str, float | None] = {}  # by pool, for nodes with their pool's labels and taints

    def cost(self, node: Node) -> float | None:
        """As `Ranks.cost`, remembered for each pool."""
        if node.special or self._by_host:
            return self._cost(node)
        pool = node.pool.name
        if pool not in self.costs:
            self.costs[pool] = self._cost(node)
        return self.costs[pool]

    def _cost(self, node: Node) -> float | None:
        shape = self.shape
        if not admits(node.labels, node.taints, shape):
            return None
        return shape.cpu / (node.cpu or 1) + shape.memory / (node.memory or 1)


class Ranks:
    """All nodes, ranked for each shape of pods.

    Each shape has a lazily updated heap: an entry is valid only while its node is unchanged (`Node.version`), and a
    query first adds the fitting nodes that changed since the last query for this shape. Finding a node costs
    O(log nodes) instead of O(nodes) as long as there are few shapes; shapes that are not queried cost nothing.

    Args:
        packing: prefer full nodes (MostAllocated) to empty ones (LeastAllocated).
    """

    def __init__(self, *, packing: bool) -> None:
        self.nodes: dict[str, Node] = {}
        self.lowest: int | None = None  # priority of the shapes queried so far
        self._rankings: dict[Shape, _Ranking] = {}
        self._changes: list[Node] = []  # log of changed nodes, oldest first
        # The rank is the free share after placing, times this; lower is better.
        self._sign = 1.0 if packing else -1.0

    def changed(self, node: Node) -> None:
        """Note that a node's free resources or its schedulability changed."""
        node.version += 1
        self._changes.append(node)

    def best(self, shape: Shape) -> Node | None:
        """The best node for such a pod; none where it fits nowhere."""
        ranking = self._rankings.get(shape) or self._ranking(shape)
        if ranking.seen != len(self._changes):
            self._catch_up(ranking)
        heap = ranking.heap
        while heap:
            node = heap[0][3]
            if node.version == heap[0][2]:
                return node
            heappop(heap)
        return None

    def admitting(self, shape: Shape) -> list[Node]:
        """The nodes that would accept such a pod if they were empty."""
        cost = self._ranking(shape).cost
        return [node for node in self.nodes.values() if node.schedulable and cost(node) is not None]

    def cost(self, shape: Shape, node: Node) -> float | None:
        """Share of the node's cores plus share of its memory for such a pod; none if the node does not admit it."""
        return self._ranking(shape).cost(node)

    def rank(self, shape: Shape, node: Node) -> tuple[float, int]:
        """Sort key of the node for such a pod, which it must admit: lowest first."""
        return self._sign * (node.free - (self.cost(shape, node) or 0.0)), node.index

    def _ranking(self, shape: Shape) -> _Ranking:
        ranking = self._rankings.get(shape)
        if ranking is None:
            if len(self._rankings) >= _MOST_SHAPES:
                self._rankings.clear()
            ranking = self._rankings[shape] = _Ranking(shape)
            self.lowest = shape.priority if self.lowest is None else min(self.lowest, shape.priority)
        return ranking

    def _catch_up(self, ranking: _Ranking) -> None:
        """Add the nodes that changed since the last query for this ranking."""
        most = 4 * len(self.nodes) + 64
        changes = self._changes
        if len(changes) > _MOST_CHANGES:
            changes.clear()
            for each in self._rankings.values():
                each.seen = _NEVER
        new = changes[ranking.seen :] if ranking.seen != _NEVER else ()
        if ranking.seen == _NEVER or len(ranking.heap) + len(new) > most:
            ranking.heap = self._entries(ranking, self.nodes.values())
            heapify(ranking.heap)
        else:
            for entry in self._entries(ranking, new if len(new) < 2 else dict.fromkeys(new)):
                heappush(ranking.heap, entry)
        ranking.seen = len(changes)

    def _entries(self, ranking: _Ranking, nodes: Iterable[Node]) -> list[_Entry]:
        # The hot path of a simulation: `Node.fits` and `Node.schedulable` inlined.
        cpu, memory, gpu, *_ = ranking.shape
        sign, costs, entries = self._sign, ranking.costs, []
        for node in nodes:
            if node.cpu_free >= cpu and node.memory_free >= memory and node.gpu_free >= gpu and node.pods_free:
                if node.cordoned or node.ready is None or node.gone is not None:
                    continue
                pool = "" if node.special else node.pool.name
                cost = costs[pool] if pool in costs else ranking.cost(node)
                if cost is not None:
                    entries.append((sign * (node.free - cost), node.index, node.version, node))
        return entries

    def explain(self, shape: Shape) -> str:
        """Why no node fits, in the words of kube-scheduler's FailedScheduling events."""
        ranking, reasons = self._ranking(shape), Counter[str]()
        for node in self.nodes.values():
            if node.cordoned:
                reasons["node(s) were unschedulable"] += 1
            elif ranking.cost(node) is None:
                taint = untolerated(node.taints, shape)
                unfit = f"had untolerated taint {{{taint.key}: {taint.value}}}" if taint is not None else _UNMATCHED
                reasons[f"node(s) {unfit}"] += 1
            else:
                for lacking in _lacking(node, shape):
                    reasons[lacking] += 1
        total = len(self.nodes)
        listed = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
        none, helpless = f"0/{total} nodes are available", "Preemption is not helpful for scheduling"
        return f"{none}: {listed}. no new claims to deallocate, preemption: {none}: {total} {helpless}."


def _lacking(node: Node, shape: Shape) -> list[str]:
    lacking = []
    if node.pods_free < 1:
        lacking.append("Too many pods")
    if node.cpu_free < shape.cpu:
        lacking.append("Insufficient cpu")
    if node.memory_free < shape.memory:
        lacking.append("Insufficient memory")
    if node.gpu_free < shape.gpu:
        lacking.append("Insufficient nvidia.com/gpu")
    return lacking
