"""Kueue: pods wait until their ClusterQueue, or its cohort, has quota for them.

Each pod is a Workload of its own, as Kueue treats the pods of Argo's workflows. In each cycle the first pod of every
queue that fits is a candidate: those that need no borrowing first, then by priority, then by age. Where a pod does not
fit, its queue's policies may preempt others ("Classic Preemption"); their quota is free once they have ended.

Sources: https://kueue.sigs.k8s.io/docs/concepts/cluster_queue/ (fitting, borrowing, queueing strategies),
https://kueue.sigs.k8s.io/docs/concepts/preemption/ (candidates, heuristics, minimal targets).
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf

from harness.simulator.cluster.objects import Pod, Words
from harness.simulator.cluster.shapes import Shape
from harness.simulator.engine.events import EventLoop
from harness.simulator.profile.kueue import ANY, LOWER, LOWER_OR_NEWER, NEVER, STRICT, Amounts, ClusterQueue

RESOURCES = ("cpu", "memory", "nvidia.com/gpu", "pods")
GATE = "kueue.x-k8s.io/admission"  # of pods that wait
WAITS = "couldn't assign flavors to pod"  # begins what Kueue says about a Workload that waits for quota
PREEMPTED = "Preempted to accommodate a workload in the ClusterQueue"
_EPSILON = 1e-6
Vector = tuple[float, ...]  # cores, bytes, GPUs, pods


def _vector(of: Amounts, missing: float) -> Vector:
    amounts = (of.cpu, of.memory, of.gpu, of.pods)
    return tuple(missing if amount is None else float(amount) for amount in amounts)


def asked(shape: Shape) -> Vector:
    """What a pod of this shape takes of a queue's quotas."""
    return shape.cpu / 1000, float(shape.memory), float(shape.gpu), 1.0


class _Queue:
    """One ClusterQueue: its quotas, and what it uses."""

    def __init__(self, settings: ClusterQueue) -> None:
        self.settings = settings
        self.nominal = _vector(settings.nominal, inf)  # infinite: not managed
        self.borrowing = _vector(settings.borrowing, inf)
        lent = zip(self.nominal, _vector(settings.lending, inf), strict=True)
        self.guaranteed = tuple(max(0.0, mine - limit) if mine < inf else 0.0 for mine, limit in lent)
        self.usage = [0.0] * len(RESOURCES)
        self.members: Sequence[_Queue] = (self,)  # of its cohort
        self.pending: dict[Shape, deque[Pod]] = {}  # by age
        self.admitted: dict[Pod, int] = {}  # with the order of admission

    def count(self, pod: Pod, sign: int) -> None:
        """Take a pod's requests, or give them back."""
        for k, amount in enumerate(asked(pod.shape)):
            self.usage[k] += sign * amount

    def available(self, k: int) -> float:
        """What it can still admit of a resource: its own quota, and what its cohort lends."""
        nominal, usage = self.nominal[k], self.usage[k]
        if nominal == inf:
            return inf
        if not self.settings.cohort:
            return nominal - usage
        shared = sum(
            member.nominal[k] - member.guaranteed[k] - max(0.0, member.usage[k] - member.guaranteed[k])
            for member in self.members
            if member.nominal[k] < inf
        )
        own = max(0.0, self.guaranteed[k] - usage)
        most = nominal - self.guaranteed[k] - max(0.0, usage - self.guaranteed[k]) + self.borrowing[k]
        return own + min(shared, most)

    def lacks(self, pod: Pod) -> list[int]:
        """The resources of which too little is available."""
        return [k for k, amount in enumerate(asked(pod.shape)) if amount > self.available(k) + _EPSILON]

    def borrows(self, pod: Pod | None = None, of: Sequence[int] = range(len(RESOURCES))) -> bool:
        """Whether it uses more than its nominal quota of one of these resources, with that pod."""
        more = asked(pod.shape) if pod is not None else (0.0,) * len(RESOURCES)
        return any(more[k] + self.usage[k] > self.nominal[k] + _EPSILON for k in of if more[k] or pod is None)

    def in_turn(self) -> Iterator[Pod]:
        """The first pod of each shape, by priority, then by age; of a strict queue only the first of all."""
        heads = sorted((-shape.priority, pods[0].created, k) for k, (shape, pods) in enumerate(self.pending.items()))
        shapes = list(self.pending)
        for _, _, k in heads[:1] if self.settings.queueing == STRICT else heads:
            yield self.pending[shapes[k]][0]


class Kueue:
    """Admits the pods of the namespaces that have a queue.

    Args:
        loop: of the simulation.
        queues: the ClusterQueues.
        admit: called with a pod that may be scheduled.
        stated: called with a pod that waits, after `Pod.words` was set.
        preempt: called with a pod to be deleted, and for which one.
    """

    def __init__(
        self,
        loop: EventLoop,
        queues: Sequence[ClusterQueue],
        admit: Callable[[Pod], None],
        stated: Callable[[Pod], None],
        preempt: Callable[[Pod, Pod], None],
    ) -> None:
        self._loop = loop
        self._admit = admit
        self._stated = stated
        self._preempt = preempt
        self._queues = [_Queue(queue) for queue in queues]
        for queue in self._queues:
            if queue.settings.cohort:
                queue.members = [q for q in self._queues if q.settings.cohort == queue.settings.cohort]
        self._of: Mapping[str, _Queue] = {tenant: queue for queue in self._queues for tenant in queue.settings.tenants}
        self._leaving: dict[Pod, Pod] = {}  # preempted pods, and for which one
        self._new: list[Pod] = []  # not looked at yet
        self._order = 0
        self._due = False

    def holds(self, pod: Pod) -> bool:
        """Whether a new pod needs a queue's quota: admitted once there is enough, it keeps it until it ends."""
        queue = self._of.get(pod.namespace)
        if queue is None:
            return False
        tell = pod.on_over

        def over(ended: Pod) -> None:
            self._release(ended)
            if tell is not None:
                tell(ended)

        pod.on_over = over
        queue.pending.setdefault(pod.shape, deque()).append(pod)
        self._new.append(pod)
        self._look()
        return True

    def _release(self, pod: Pod) -> None:
        """A pod has ended, or was deleted before it was admitted."""
        queue = self._of[pod.namespace]
        self._leaving.pop(pod, None)
        if queue.admitted.pop(pod, None) is not None:
            queue.count(pod, -1)
        elif pod.shape in queue.pending and pod in queue.pending[pod.shape]:
            self._drop(queue, pod)
        self._look()

    def _drop(self, queue: _Queue, pod: Pod) -> None:
        queue.pending[pod.shape].remove(pod)
        if not queue.pending[pod.shape]:
            del queue.pending[pod.shape]

    def _look(self) -> None:
        """Look at all queues once everything of this instant has happened."""
        if not self._due:
            self._due = True
            self._loop.after(0.0, self._cycles)

    def _cycles(self) -> None:
        self._due = False
        while candidates := [pod for each in self._queues if (pod := self._candidate(each)) is not None]:
            for queue, pod in sorted(((self._of[p.namespace], p) for p in candidates), key=_turn):
                if not queue.lacks(pod):
                    self._let_in(queue, pod)
        new, self._new = self._new, []
        for pod in new:
            if pod not in self._of[pod.namespace].admitted and not pod.over:
                self._tell(self._of[pod.namespace], pod)
        for queue in self._queues:
            for pod in list(queue.in_turn()):
                self._make_way(queue, pod)

    def _candidate(self, queue: _Queue) -> Pod | None:
        return next((pod for pod in queue.in_turn() if not queue.lacks(pod)), None)

    def _let_in(self, queue: _Queue, pod: Pod) -> None:
        self._drop(queue, pod)
        self._order += 1
        queue.admitted[pod] = self._order
        queue.count(pod, 1)
        pod.words = None
        self._admit(pod)

    def _tell(self, queue: _Queue, pod: Pod) -> None:
        """Say what a pod waits for, as Kueue's event does."""
        k = next(iter(queue.lacks(pod)), 0)  # of a strict queue it may only be its turn that has not come
        missing = max(0.0, asked(pod.shape)[k] - max(0.0, queue.available(k)))
        text = f"insufficient unused quota for {RESOURCES[k]} in flavor default-flavor, {missing:.4g} more needed"
        pod.words = Words("event", "Pending", f"{WAITS} set main: {text}")
        self._stated(pod)

    def _make_way(self, queue: _Queue, pod: Pod) -> None:
        """Preempt others where the policies allow it, unless those that were preempted for it have not ended yet."""
        lacking = queue.lacks(pod)
        if lacking and pod not in self._leaving.values():
            for victim in targets(queue, pod, lacking, self._leaving):
                self._leaving[victim] = pod
                self._preempt(victim, pod)


def _turn(of: tuple[_Queue, Pod]) -> tuple[bool, int, float]:
    queue, pod = of
    return queue.borrows(pod), -pod.shape.priority, pod.created


# --- preemption -------------------------------------------------------------------------------------------------------


def targets(queue: _Queue, pod: Pod, lacking: Sequence[int], leaving: Mapping[Pod, Pod]) -> list[Pod]:
    """The pods to preempt for one that does not fit; none where the policies don't allow it, or it does not help."""
    wanted = asked(pod.shape)
    if any(wanted[k] > queue.nominal[k] + _EPSILON for k in lacking):
        return []
    found = [candidate for candidate in _candidates(queue, pod, lacking) if candidate[1] not in leaving]
    found.sort(key=lambda each: (each[0] is queue, each[1].shape.priority, -each[0].admitted[each[1]]))
    own = [each for each in found if each[0] is queue]
    if len(own) < len(found) and not queue.borrows(of=lacking):
        chosen = _enough(queue, pod, found, lacking, borrowing=False)
        if chosen:
            return chosen
    return _enough(queue, pod, own, lacking, borrowing=True)


def _candidates(queue: _Queue, pod: Pod, lacking: Sequence[int]) -> Iterator[tuple[_Queue, Pod]]:
    settings, priority = queue.settings, pod.shape.priority
    if settings.within_queue != NEVER:
        for each in queue.admitted:
            newer = settings.within_queue == LOWER_OR_NEWER and each.shape.priority == priority
            if each.shape.priority < priority or (newer and each.created > pod.created):
                yield queue, each
    if settings.reclaim not in {LOWER, ANY}:
        return
    for other in queue.members:
        if other is not queue and other.borrows(of=lacking):
            for each in other.admitted:
                if settings.reclaim == ANY or each.shape.priority < priority:
                    yield other, each


def _enough(
    queue: _Queue, pod: Pod, candidates: Sequence[tuple[_Queue, Pod]], lacking: Sequence[int], *, borrowing: bool
) -> list[Pod]:
    """The first candidates without which the pod fits, and of those only the ones that are needed."""

    def fits() -> bool:
        return not queue.lacks(pod) and (borrowing or not queue.borrows(pod))

    taken: list[tuple[_Queue, Pod]] = []
    for home, each in candidates:
        if home is not queue and not home.borrows(of=lacking):
            continue  # it has given back what it borrowed
        home.count(each, -1)
        taken.append((home, each))
        if fits():
            break
    enough = fits()
    needed: list[Pod] = []
    for home, each in reversed(taken):
        home.count(each, 1)
        if enough and not fits():
            home.count(each, -1)
            needed.append(each)
    for home, each in taken:
        if each in needed:
            home.count(each, 1)
    return needed
