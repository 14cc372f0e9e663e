"""kube-scheduler: one pod at a time by priority, then first come first served; what fits nowhere waits for room."""

from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from heapq import heapify, heappop, heappush

from harness.simulator.cluster.nodes import HOSTNAME, Node, admits, untolerated
from harness.simulator.cluster.pods import Change, Pod, Shape
from harness.simulator.cluster.preemption import choose, fits_beside
from harness.simulator.cluster.witness import Witness
from harness.simulator.events import EventLoop
from harness.simulator.profile import Scheduler as Settings

_MOST_SHAPES = 64
_MOST_CHANGES = 100_000  # of nodes, that are kept for shapes which do not come
_NEVER = -1
_Entry = tuple[float, int, int, Node]  # rank, the node's number, its version, the node
_UNMATCHED = "didn't match Pod's node affinity/selector"


class _Ranking:
    """The nodes that take one shape, best first."""

    __slots__ = ("_by_host", "costs", "heap", "seen", "shape")

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.heap: list[_Entry] = []
        self.seen = _NEVER  # how many changes of nodes it knows of
        self._by_host = any(each.key == HOSTNAME for each in shape.requirements)
        self.costs: dict[str, float | None] = {}  # by pool, as far as its nodes are alike to such pods

    def cost(self, node: Node) -> float | None:
        """What share of the node's cores plus of its memory such a pod takes; none where it is not admitted."""
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


class Scheduler:
    """Places pods on nodes.

    Nodes are ranked once per shape, in a heap that is kept up to date lazily: an entry counts only while its node is
    unchanged since (`Node.version`), and when a shape is asked for, the nodes that changed since it was asked for last
    and still fit are entered. Placing a pod thus costs O(log nodes), not O(nodes), as long as pods come in few shapes,
    and shapes that do not come cost nothing.

    A pod that fits nowhere is tried again when a node has room for it, but not before its back-off is over, which
    doubles with every attempt. A real scheduler also tries, and backs off, pods that the room is too small for.
    """

    def __init__(
        self,
        loop: EventLoop,
        settings: Settings,
        witness: Witness,
        bind: Callable[[Pod, Node], None],
        preempt: Callable[[Pod, Pod, Node], None],
    ) -> None:
        self._loop = loop
        self.settings = settings
        self._witness = witness
        self._bind = bind
        self._preempt = preempt  # (victim, in favour of, on)
        self._nodes: dict[str, Node] = {}
        self._queue: deque[Pod] = deque()
        self._blocked: dict[Shape, deque[Pod]] = {}
        self._rankings: dict[Shape, _Ranking] = {}
        self._backing_off = 0
        self._nominated: dict[Pod, Node] = {}  # for whom room is being made, and where
        self._lowest: int | None = None  # priority of any pod that came
        self._changes: list[Node] = []  # nodes that changed, oldest first
        self._busy = False
        # Lower ranks are better: what is left after placing, times this (LeastAllocated, or MostAllocated).
        self._sign = 1.0 if settings.packing else -1.0

    # --- pods ---------------------------------------------------------------------------------------------------

    def add(self, pod: Pod) -> None:
        """A pod wants a node."""
        queue, priority = self._queue, pod.shape.priority
        if not queue or queue[-1].shape.priority >= priority:
            queue.append(pod)
        else:
            behind = next(index for index, each in enumerate(queue) if each.shape.priority < priority)
            queue.insert(behind, pod)
        self._go_on()

    def blocked(self) -> Iterable[tuple[Shape, list[Pod]]]:
        """The pods that fit nowhere, by shape, oldest first."""
        for shape, pods in self._blocked.items():
            waiting = [pod for pod in pods if pod.deleting is None and not pod.over]
            if waiting:
                yield shape, waiting

    @property
    def waiting(self) -> int:
        """How many pods have no node."""
        return len(self._queue) + self._backing_off + sum(len(pods) for pods in self._blocked.values())

    def _go_on(self) -> None:
        if self._queue and not self._busy:
            self._busy = True
            self._loop.after(self.settings.pod_s, self._place)

    def _place(self) -> None:
        self._busy = False
        pod = self._queue.popleft()
        if pod.deleting is None and not pod.over:
            node = self._best(pod.shape) if not self._nominated else self._best_beside(pod)
            if node is None:
                self._block(pod)
                self._make_way(pod)
            else:
                if pod.nominated:
                    del self._nominated[pod]
                    pod.nominated = ""
                node.take(pod)
                self.node_changed(node)
                pod.node = node
                pod.scheduled = self._loop.now
                self._bind(pod, node)
        self._go_on()

    def _block(self, pod: Pod) -> None:
        self._blocked.setdefault(pod.shape, deque()).append(pod)
        settings = self.settings
        pod.retry_at = self._loop.now + min(settings.backoff_s * 2**pod.attempts, settings.backoff_max_s)
        pod.attempts += 1
        if pod.unschedulable is None:
            pod.unschedulable = self._loop.now
            self._witness.pod_changed(pod, Change.UNSCHEDULABLE)

    # --- nodes --------------------------------------------------------------------------------------------------

    def node_changed(self, node: Node) -> None:
        """What is free on a node changed, or whether it takes pods at all."""
        node.version += 1
        self._changes.append(node)

    def room_made(self, node: Node) -> None:
        """A node came, or has more free than before: the longest-waiting pods that may fit are tried again."""
        if node.gone is not None:
            self._nodes.pop(node.name, None)
        else:
            self._nodes[node.name] = node
        self.node_changed(node)
        if self._blocked and node.schedulable:
            self._retry(node)

    def _retry(self, node: Node) -> None:
        """As many pods as could fit if they were alone; the others are better off waiting than being tried in vain."""
        hopeful: list[tuple[int, float, int, Pod]] = []
        for shape, pods in self._blocked.items():
            room = node.room(shape) if pods and self._ranking(shape).cost(node) is not None else 0
            for _ in range(min(room, len(pods))):
                pod = pods.popleft()
                heappush(hopeful, (-shape.priority, pod.created, len(hopeful), pod))
        while hopeful:
            self._try_again(heappop(hopeful)[3])
        for shape in [shape for shape, pods in self._blocked.items() if not pods]:
            del self._blocked[shape]

    def _try_again(self, pod: Pod) -> None:
        """Now, or when its back-off is over; room that was made for it is kept meanwhile, so it needs none."""
        if pod.retry_at <= self._loop.now or pod in self._nominated:
            self.add(pod)
        else:
            self._backing_off += 1
            self._loop.at(pod.retry_at, self._backed_off, pod)

    def _backed_off(self, pod: Pod) -> None:
        self._backing_off -= 1
        self.add(pod)

    # --- preemption ---------------------------------------------------------------------------------------------

    def _make_way(self, pod: Pod) -> None:
        """Pods of lower priority go where that makes room for this one."""
        priority = pod.shape.priority
        if self._lowest is None or priority <= self._lowest:
            return
        making = self._nominated.get(pod)
        if making is not None and any(
            each.deleting is not None and each.shape.priority < priority for each in making.pods.values()
        ):
            return  # what is on its way out is waited for
        ranking = self._ranking(pod.shape)
        nodes = [each for each in self._nodes.values() if each.schedulable and ranking.cost(each) is not None]
        found = choose(nodes, pod, lambda node: self._kept(node, pod))
        if found is None:
            return
        node, victims = found
        self._nominated[pod] = node
        pod.nominated = node.name
        self._witness.pod_changed(pod, Change.LABELLED)
        for victim in victims:
            self._preempt(victim, pod, node)

    def _kept(self, node: Node, pod: Pod) -> list[Shape]:
        """What is kept on the node for others, which are no less important."""
        return [
            each.shape
            for each, where in self._nominated.items()
            if where is node and each is not pod and each.shape.priority >= pod.shape.priority
        ]

    def _best_beside(self, pod: Pod) -> Node | None:
        """The best node while room is kept for some: every one is looked at."""
        gone = [each for each in self._nominated if each.deleting is not None or each.over]
        for each in gone:
            del self._nominated[each]
        ranking = self._ranking(pod.shape)
        best: tuple[float, int, Node] | None = None
        for node in self._nodes.values():
            cost = ranking.cost(node) if node.schedulable else None
            if cost is None or not fits_beside(node, pod.shape, self._kept(node, pod)):
                continue
            rank = (self._sign * (node.free - cost), node.index, node)
            best = rank if best is None or rank[:2] < best[:2] else best
        return best[2] if best is not None else None

    # --- ranking ------------------------------------------------------------------------------------------------

    def _best(self, shape: Shape) -> Node | None:
        ranking = self._ranking(shape)
        self._catch_up(ranking)
        heap = ranking.heap
        while heap:
            node = heap[0][3]
            if node.version == heap[0][2]:
                return node
            heappop(heap)
        return None

    def _ranking(self, shape: Shape) -> _Ranking:
        ranking = self._rankings.get(shape)
        if ranking is None:
            if len(self._rankings) >= _MOST_SHAPES:
                self._rankings.clear()
            ranking = self._rankings[shape] = _Ranking(shape)
            self._lowest = shape.priority if self._lowest is None else min(self._lowest, shape.priority)
        return ranking

    def _catch_up(self, ranking: _Ranking) -> None:
        """Enter the nodes that changed since the ranking was asked for last."""
        most = 4 * len(self._nodes) + 64
        changes = self._changes
        if len(changes) > _MOST_CHANGES:
            changes.clear()
            for each in self._rankings.values():
                each.seen = _NEVER
        new = changes[ranking.seen :] if ranking.seen != _NEVER else ()
        if ranking.seen == _NEVER or len(ranking.heap) + len(new) > most:
            ranking.heap = list(self._entries(ranking, self._nodes.values()))
            heapify(ranking.heap)
        else:
            for entry in self._entries(ranking, new if len(new) < 2 else dict.fromkeys(new)):
                heappush(ranking.heap, entry)
        ranking.seen = len(changes)

    def _entries(self, ranking: _Ranking, nodes: Iterable[Node]) -> Iterator[_Entry]:
        # The busiest lines of a simulation: `Node.fits`, with what is the shape's looked up once.
        cpu, memory, gpu, *_ = ranking.shape
        sign, costs = self._sign, ranking.costs
        for node in nodes:
            if node.cpu_free >= cpu and node.memory_free >= memory and node.gpu_free >= gpu and node.pods_free:
                pool = "" if node.special else node.pool.name
                cost = costs[pool] if pool in costs else ranking.cost(node)
                if cost is not None and node.schedulable:
                    yield sign * (node.free - cost), node.index, node.version, node

    def explain(self, shape: Shape) -> str:
        """Why no node fits, worded as kube-scheduler words its FailedScheduling events."""
        ranking, reasons = self._ranking(shape), Counter[str]()
        for node in self._nodes.values():
            if node.cordoned:
                reasons["node(s) were unschedulable"] += 1
            elif ranking.cost(node) is None:
                taint = untolerated(node.taints, shape)
                unfit = f"had untolerated taint {{{taint.key}: {taint.value}}}" if taint is not None else _UNMATCHED
                reasons[f"node(s) {unfit}"] += 1
            else:
                for lacking in _lacking(node, shape):
                    reasons[lacking] += 1
        total = len(self._nodes)
        listed = ", ".join(sorted(f"{count} {reason}" for reason, count in reasons.items()))
        helpless = "Preemption is not helpful for scheduling"
        return (
            f"0/{total} nodes are available: {listed}. preemption: 0/{total} nodes are available: {total} {helpless}."
        )


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
