"""kube-scheduler: one pod at a time, by priority, then first come first served; unschedulable pods wait."""

from collections import deque
from collections.abc import Callable, Iterable
from heapq import heappop, heappush

from harness.simulator.cluster.listener import Change, ClusterListener
from harness.simulator.cluster.objects import Node, Pod
from harness.simulator.cluster.ranking import Ranks
from harness.simulator.cluster.shapes import Shape
from harness.simulator.engine.events import EventLoop
from harness.simulator.profile import Scheduler as Settings

# --- preemption: which pods of lower priority are evicted for an unschedulable pod, as kube-scheduler chooses them
# The rules are those of its DefaultPreemption plugin (pkg/scheduler/framework/preemption): as few victims as
# possible, higher priorities spared first; then the node with the least important victims.


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


class Scheduler:
    """Places pods on nodes.

    An unschedulable pod is retried when a node has room for it, but not before the end of its back-off, which doubles
    with every attempt. A real scheduler also retries, and backs off, pods that do not fit into the freed room.
    """

    def __init__(
        self,
        loop: EventLoop,
        settings: Settings,
        listener: ClusterListener,
        bind: Callable[[Pod, Node], None],
        preempt: Callable[[Pod, Pod, Node], None],
    ) -> None:
        self._loop = loop
        self.settings = settings
        self._listener = listener
        self._bind = bind
        self._preempt = preempt  # (victim, preemptor, node)
        self.ranks = Ranks(packing=settings.packing)
        self._queue: deque[Pod] = deque()
        self._blocked: dict[Shape, deque[Pod]] = {}
        self._backing_off = 0
        self._nominated: dict[Pod, Node] = {}  # preemptors, and the nodes where their victims run
        self._busy = False

    # --- pods ---------------------------------------------------------------------------------------------------

    def add(self, pod: Pod) -> None:
        """Enqueue a pod; it is scheduled in the order of priority and arrival."""
        queue, priority = self._queue, pod.shape.priority
        if not queue or queue[-1].shape.priority >= priority:
            queue.append(pod)
        else:
            behind = next(index for index, each in enumerate(queue) if each.shape.priority < priority)
            queue.insert(behind, pod)
        if not self._busy:
            self._go_on()

    def blocked(self) -> Iterable[tuple[Shape, list[Pod]]]:
        """The unschedulable pods by shape, oldest first."""
        for shape, pods in self._blocked.items():
            waiting = [pod for pod in pods if pod.deleting is None and not pod.over]
            if waiting:
                yield shape, waiting

    @property
    def about_to_try(self) -> bool:
        """Whether pods are queued or backing off: they may still turn out to be unschedulable."""
        return bool(self._queue) or self._backing_off > 0

    @property
    def waiting(self) -> int:
        """How many pods wait for a node."""
        return len(self._queue) + self._backing_off + sum(len(pods) for pods in self._blocked.values())

    def _go_on(self) -> None:
        if self._queue and not self._busy:
            self._busy = True
            self._loop.after(self.settings.pod_s, self._place)

    def _place(self) -> None:
        self._busy = False
        pod = self._queue.popleft()
        if pod.deleting is None and not pod.over:
            node = self.ranks.best(pod.shape) if not self._nominated else self._best_beside(pod)
            if node is None:
                self._block(pod)
                self._make_way(pod)
            else:
                if pod.nominated:
                    del self._nominated[pod]
                    pod.nominated = ""
                node.take(pod)
                self.ranks.changed(node)
                pod.node = node
                late_s = pod.measured.scheduling if pod.measured is not None else 0.0
                if late_s:
                    self._loop.after(late_s, self._bound, pod, node)
                else:
                    self._bound(pod, node)
        if self._queue:
            self._go_on()

    def _bound(self, pod: Pod, node: Node) -> None:
        if pod.deleting is None and not pod.over:
            pod.scheduled = self._loop.now
            self._bind(pod, node)

    def _block(self, pod: Pod) -> None:
        self._blocked.setdefault(pod.shape, deque()).append(pod)
        settings = self.settings
        pod.retry_at = self._loop.now + min(settings.backoff_s * 2**pod.attempts, settings.backoff_max_s)
        pod.attempts += 1
        if pod.attempts == 1:
            if pod.unschedulable is None:  # else a gate has kept it from being looked at
                pod.unschedulable = self._loop.now
            self._listener.pod_changed(pod, Change.UNSCHEDULABLE)

    # --- nodes --------------------------------------------------------------------------------------------------

    def room_made(self, node: Node) -> None:
        """A node was added or has more free resources: retry the longest-waiting pods that may fit."""
        if node.gone is not None:
            self.ranks.nodes.pop(node.name, None)
        else:
            self.ranks.nodes[node.name] = node
        self.ranks.changed(node)
        if self._blocked and node.schedulable:
            self._retry(node)

    def _retry(self, node: Node) -> None:
        """Retry as many pods as could fit by themselves; the others keep waiting."""
        hopeful: list[tuple[int, float, int, Pod]] = []
        for shape, pods in self._blocked.items():
            room = node.room(shape) if pods and self.ranks.cost(shape, node) is not None else 0
            for _ in range(min(room, len(pods))):
                pod = pods.popleft()
                heappush(hopeful, (-shape.priority, pod.created, len(hopeful), pod))
        while hopeful:
            self._try_again(heappop(hopeful)[3])
        for shape in [shape for shape, pods in self._blocked.items() if not pods]:
            del self._blocked[shape]

    def _try_again(self, pod: Pod) -> None:
        """Now, or after its back-off; a nominated pod needs no back-off, since its room is reserved."""
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
        """Preempt pods of lower priority if that makes room for this one."""
        priority = pod.shape.priority
        if not self.settings.preemption or self.ranks.lowest is None or priority <= self.ranks.lowest:
            return
        making = self._nominated.get(pod)
        if making is not None and any(
            each.deleting is not None and each.shape.priority < priority for each in making.pods.values()
        ):
            return  # its victims are still terminating
        found = choose(self.ranks.admitting(pod.shape), pod, lambda node: self._kept(node, pod))
        if found is None:
            return
        node, victims = found
        self._nominated[pod] = node
        pod.nominated = node.name
        self._listener.pod_changed(pod, Change.LABELLED)
        for victim in victims:
            self._preempt(victim, pod, node)

    def _kept(self, node: Node, pod: Pod) -> list[Shape]:
        """The shapes of other pods nominated to the node with no lower priority."""
        return [
            each.shape
            for each, where in self._nominated.items()
            if where is node and each is not pod and each.shape.priority >= pod.shape.priority
        ]

    def _best_beside(self, pod: Pod) -> Node | None:
        """The best node while room is reserved for preemptors: scans all nodes."""
        gone = [each for each in self._nominated if each.deleting is not None or each.over]
        for each in gone:
            del self._nominated[each]
        shape, nodes = pod.shape, self.ranks.admitting(pod.shape)
        roomy = [node for node in nodes if fits_beside(node, shape, self._kept(node, pod))]
        return min(roomy, key=lambda node: self.ranks.rank(shape, node), default=None)
