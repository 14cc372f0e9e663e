"""Kueue's admission against the rules of its documentation; the numbers are those of its examples where it has some.

https://kueue.sigs.k8s.io/docs/concepts/cluster_queue/ and https://kueue.sigs.k8s.io/docs/concepts/preemption/
"""

import pytest

from harness.simulator.cluster.kueue import Kueue
from harness.simulator.cluster.objects import Pod
from harness.simulator.cluster.shapes import Shape
from harness.simulator.engine.events import EventLoop
from harness.simulator.profile import Amounts, ClusterQueue


def queue(name, cpu, cohort="", borrow=None, lend=None, **policies):
    return ClusterQueue(
        name, (name,), Amounts(cpu=cpu), Amounts(cpu=borrow), Amounts(cpu=lend), cohort=cohort, **policies
    )


class Cluster:
    """Pods of one namespace per queue: admitted ones run until they are ended or preempted."""

    def __init__(self, *queues):
        self.loop = EventLoop()
        self.kueue = Kueue(self.loop, queues, self._admit, lambda pod: None, self._preempt)
        self.running, self.preempted = [], []

    def _admit(self, pod):
        self.running.append(pod.name)

    def _preempt(self, victim, pod):
        del pod
        self.preempted.append(victim.name)
        self.loop.after(1.0, self._end, victim)

    def _end(self, pod):
        pod.finished = self.loop.now
        if pod.name in self.running:
            self.running.remove(pod.name)
        pod.on_over(pod)

    def submit(self, name, cpu, priority=0, memory=0):
        """A pod named after its queue: ``a-1``."""
        pod = Pod(name, name.partition("-")[0], Shape(cpu=round(cpu * 1000), memory=memory, priority=priority), ())
        pod.created = self.loop.now
        assert self.kueue.holds(pod)
        return pod

    def settle(self):
        self.loop.run(self.loop.now + 0.5)
        return self.running


# Each: queues, pods in the order of their creation (name, CPU, priority), who runs then.
RULES = {
    "up to the nominal quota": ([queue("a", 9)], [("a-1", 5, 0), ("a-2", 4, 0), ("a-3", 1, 0)], ["a-1", "a-2"]),
    "best effort: an older one that does not fit does not block a newer one": (
        [queue("a", 9)], [("a-1", 6, 0), ("a-2", 6, 0), ("a-3", 3, 0)], ["a-1", "a-3"],
    ),
    "strict: it does": (
        [queue("a", 9, queueing="StrictFIFO")], [("a-1", 6, 0), ("a-2", 6, 0), ("a-3", 3, 0)], ["a-1"],
    ),
    "by priority, then by age": ([queue("a", 4)], [("a-1", 4, 0), ("a-2", 4, 5)], ["a-2"]),
    "without a cohort nothing is borrowed": ([queue("a", 9), queue("b", 12)], [("a-1", 10, 0)], []),
    "borrows all that its cohort does not use, 9 + 12": (
        [queue("a", 9, "ab"), queue("b", 12, "ab")], [("a-1", 21, 0)], ["a-1"],
    ),
    "and no more": ([queue("a", 9, "ab"), queue("b", 12, "ab")], [("a-1", 22, 0)], []),
    "up to its borrowing limit, 9 + 1": (
        [queue("a", 9, "ab", borrow=1), queue("b", 12, "ab")], [("a-1", 10, 0), ("a-2", 1, 0)], ["a-1"],
    ),
    "without a limit up to the sum": (
        [queue("a", 9, "ab", borrow=1), queue("b", 12, "ab")], [("b-1", 21, 0)], ["b-1"],
    ),
    "what others keep is not lent": (
        [queue("a", 9, "ab"), queue("b", 12, "ab", lend=2)], [("a-1", 11, 0), ("a-2", 1, 0), ("b-1", 10, 0)],
        ["b-1", "a-1"],
    ),
    "who needs no borrowing comes first": (
        [queue("a", 9, "ab"), queue("b", 12, "ab")], [("a-1", 12, 9), ("b-1", 12, 0)], ["b-1"],
    ),
    "of equal ones the higher priority": (
        [queue("a", 9, "ab"), queue("b", 9, "ab")], [("a-1", 10, 0), ("b-1", 10, 5)], ["b-1"],
    ),
    "a queue without quota of its own lives on others'": (
        [queue("a", 0, "ab"), queue("b", 12, "ab")], [("a-1", 12, 0)], ["a-1"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("rule", RULES)
def test_who_is_admitted(rule):
    queues, pods, running = RULES[rule]
    cluster = Cluster(*queues)
    for name, cpu, priority in pods:
        cluster.submit(name, cpu, priority)
    assert cluster.settle() == running


# Each: queues, pods that run (name, CPU, priority), the one that comes then, and who is preempted.
PREEMPTIONS = {
    "never, unless a policy says so": ([queue("a", 4)], [("a-1", 4, 0)], ("a-2", 4, 9), []),
    "within the queue a lower priority": (
        [queue("a", 4, within_queue="LowerPriority")], [("a-1", 4, 0)], ("a-2", 4, 9), ["a-1"],
    ),
    "not an equal one": ([queue("a", 4, within_queue="LowerPriority")], [("a-1", 4, 9)], ("a-2", 4, 9), []),
    "the lowest priority first, and as few as possible": (
        [queue("a", 6, within_queue="LowerPriority")], [("a-1", 2, 1), ("a-2", 2, 0), ("a-3", 2, 2)], ("a-4", 2, 9),
        ["a-2"],
    ),
    "of equal ones the one that was admitted last": (
        [queue("a", 4, within_queue="LowerPriority")], [("a-1", 2, 0), ("a-2", 2, 0)], ("a-3", 2, 9), ["a-2"],
    ),
    "one large one instead of a small one before it": (
        [queue("a", 6, within_queue="LowerPriority")], [("a-1", 5, 1), ("a-2", 1, 0)], ("a-3", 5, 9), ["a-1"],
    ),
    "not what asks for more than the nominal quota": (
        [queue("a", 4, "ab", within_queue="LowerPriority"), queue("b", 4, "ab")], [("a-1", 4, 0), ("b-1", 4, 0)],
        ("a-2", 5, 9), [],
    ),
    "reclaims what others borrow, whatever their priority": (
        [queue("a", 4, "ab", reclaim="Any"), queue("b", 4, "ab")], [("b-1", 4, 9), ("b-2", 4, 9)], ("a-1", 4, 0),
        ["b-2"],
    ),
    "only of lower priority": (
        [queue("a", 4, "ab", reclaim="LowerPriority"), queue("b", 4, "ab")], [("b-1", 4, 9), ("b-2", 4, 9)],
        ("a-1", 4, 0), [],
    ),
    "nothing of a queue that does not borrow": (
        [queue("a", 8, "ab", reclaim="Any"), queue("b", 4, "ab"), queue("c", 0, "ab")],
        [("b-1", 4, 0), ("a-1", 4, 0), ("c-1", 4, 0)], ("a-2", 4, 0), ["c-1"],
    ),
    "no more than was borrowed": (
        [queue("a", 6, "ab", reclaim="Any"), queue("b", 6, "ab")],
        [("b-1", 3, 0), ("b-2", 3, 0), ("b-3", 3, 0), ("b-4", 3, 0)], ("a-1", 6, 0), ["b-4", "b-3"],
    ),
    "nobody where it would not help": (
        [queue("a", 4, "ab", reclaim="Any"), queue("b", 4, "ab", lend=0)], [("a-1", 2, 0), ("b-1", 4, 0)],
        ("a-2", 4, 0), [],
    ),
}  # fmt: skip


@pytest.mark.parametrize("rule", PREEMPTIONS)
def test_who_is_preempted(rule):
    queues, running, (name, cpu, priority), preempted = PREEMPTIONS[rule]
    cluster = Cluster(*queues)
    for each in running:
        cluster.submit(*each)
        cluster.settle()
    assert cluster.running == [each[0] for each in running]
    cluster.submit(name, cpu, priority)
    cluster.settle()
    assert sorted(cluster.preempted) == sorted(preempted)
    cluster.loop.run(cluster.loop.now + 2.0)
    assert (name in cluster.running) == bool(preempted)


def test_ended_pods_give_back_their_quota_in_the_order_of_age():
    cluster = Cluster(queue("a", 4))
    first = cluster.submit("a-1", 4)
    cluster.settle()
    cluster.submit("a-2", 3)
    cluster.settle()
    cluster.submit("a-3", 3)
    assert cluster.settle() == ["a-1"]
    cluster._end(first)
    assert cluster.settle() == ["a-2"]


def test_a_pod_that_is_deleted_while_it_waits_does_not_wait_any_more():
    cluster = Cluster(queue("a", 4))
    first, second = cluster.submit("a-1", 4), cluster.submit("a-2", 4)
    cluster.settle()
    cluster._end(second)
    cluster._end(first)
    assert cluster.settle() == []


def test_what_has_no_queue_or_no_quota_is_not_managed():
    cluster = Cluster(queue("a", 4))
    assert not cluster.kueue.holds(Pod("x", "elsewhere", Shape(cpu=9000), ()))
    cluster.submit("a-1", 1, memory=2**40)
    assert cluster.settle() == ["a-1"]
