from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.simulator.cluster import Change, Cluster, Pod, Requirement, Shape, Toleration
from harness.simulator.engine.distributions import fixed
from harness.simulator.engine.events import EventLoop
from harness.simulator.profile import Kubelet, Pool, Profile, Scheduler, Taint
from tests.support.platforms import GI, Journal, pool, profile

GPU = pool("gpu", gpu=1, taints=(Taint("sku", "gpu"),), max=1)
AVAILABLE = "0/3 nodes are available: 1 node(s) had untolerated taint {sku: gpu}, "
PLAIN = pool("plain", max=2, initial=2)


def place(its_profile: Profile, *shapes: Shape) -> tuple[list[Pod], Cluster, Journal]:
    loop, journal = EventLoop(), Journal()
    cluster = Cluster(loop, its_profile, "0", journal)
    pods = [Pod(f"pod-{number}", "default", shape, ()) for number, shape in enumerate(shapes)]
    for pod in pods:
        cluster.create(pod)
    loop.run()
    return pods, cluster, journal


def pools_of(pods: list[Pod]) -> list[str | None]:
    return [pod.node.pool.name if pod.node is not None else None for pod in pods]


@pytest.mark.parametrize(
    ("shape", "expected"),
    [
        (Shape(1000), "plain"),
        (Shape(1000, tolerations=(Toleration("sku", "Equal", "gpu", "NoSchedule"),), gpu=1), "gpu"),
        (Shape(1000, tolerations=(Toleration("sku", "Exists"),), gpu=1), "gpu"),
        (Shape(1000, gpu=1), None),  # the taint keeps it away from the only GPU
        (Shape(1000, selector=(("agentpool", "gpu"),)), None),
        (Shape(1000, affinity=((Requirement("agentpool", "NotIn", ("gpu",)),),)), "plain"),
        (Shape(1000, affinity=((Requirement("agentpool", "In", ("gpu", "plain")),),)), "plain"),
        (Shape(1000, affinity=((Requirement("no-such-label", "Exists"),),)), None),
        (Shape(1000, affinity=((Requirement("no-such-label", "DoesNotExist"),),)), "plain"),
        (Shape(1000, affinity=((Requirement("pool", "Exists"),), (Requirement("agentpool", "Exists"),))), "plain"),
        (Shape(1000, affinity=((Requirement("agentpool", "Exists"), Requirement("pool", "Exists")),)), None),
        (Shape(1000, selector=(("agentpool", "gpu"),), affinity=((Requirement("agentpool", "Exists"),),)), None),
        (Shape(4001), None),
        (Shape(1000, 17 * GI), None),
    ],
)
def test_a_pod_goes_where_selectors_taints_and_requests_allow(shape: Shape, expected: str | None) -> None:
    pods, _, _ = place(profile(PLAIN, GPU), shape)
    assert pools_of(pods) == [expected]


@pytest.mark.parametrize(("packing", "nodes"), [(True, 1), (False, 2)])
def test_packing_fills_a_node_and_spreading_takes_the_emptiest(packing: bool, nodes: int) -> None:
    pods, _, _ = place(profile(PLAIN, scheduler=Scheduler(0.0, packing)), Shape(1000), Shape(1000))
    assert len({pod.node.name for pod in pods if pod.node}) == nodes


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (Shape(5000), AVAILABLE + "2 Insufficient cpu."),
        (
            Shape(1000, affinity=((Requirement("zone", "In", ("a",)),),)),
            AVAILABLE + "2 node(s) didn't match Pod's node affinity/selector.",
        ),
        (
            Shape(5000, 20 * GI),
            AVAILABLE + "2 Insufficient cpu, 2 Insufficient memory.",
        ),
    ],
)
def test_why_no_node_fits_is_worded_as_kube_scheduler_words_it(shape: Shape, message: str) -> None:
    _, cluster, _ = place(profile(PLAIN, GPU), shape)
    assert cluster.scheduler.ranks.explain(shape).startswith(message)


def test_blocked_pods_are_placed_oldest_first_when_room_appears() -> None:
    loop = EventLoop()
    cluster = Cluster(loop, profile(pool(cpu=2)), "0", Journal())
    first = Pod("first", "default", Shape(2000), (), on_running=lambda pod: loop.after(5, cluster.kubelet.finish, pod))
    cluster.create(first)
    waiting = [Pod(f"w{number}", "default", Shape(1500 - number), ()) for number in range(3)]
    for number, pod in enumerate(waiting):
        loop.at(1.0 + number, cluster.create, pod)
    loop.run()
    assert [pod.scheduled for pod in waiting] == [5.0, None, None]
    assert waiting[1].unschedulable == 2.0


def test_a_cordoned_node_gets_no_pods_until_it_is_uncordoned() -> None:
    loop = EventLoop()
    cluster = Cluster(loop, profile(pool()), "0", Journal())
    node = next(iter(cluster.nodes.values()))
    cluster.cordon(node, cordoned=True)
    pod = Pod("pod", "default", Shape(1000), ())
    cluster.create(pod)
    loop.run(10)
    assert pod.node is None
    assert "1 node(s) were unschedulable" in cluster.scheduler.ranks.explain(pod.shape)
    cluster.cordon(node, cordoned=False)
    loop.run(20)
    assert pod.scheduled == 10.0


def test_a_node_that_goes_takes_its_pods_along() -> None:
    lost = []
    loop, journal = EventLoop(), Journal()
    cluster = Cluster(loop, profile(pool()), "0", journal)
    pod = Pod("pod", "default", Shape(1000), (), on_over=lost.append)
    cluster.create(pod)
    loop.run()
    cluster.remove_node(next(iter(cluster.nodes.values())))
    loop.run()
    assert lost == [pod]
    assert pod.phase == "Failed"
    assert journal.saw(Change.GONE) == [pod]
    assert not cluster.pods


def test_a_spot_node_is_tainted_and_labelled_as_the_cloud_does_it() -> None:
    cluster = Cluster(EventLoop(), profile(pool("spot", spot=True)), "0", Journal())
    node = next(iter(cluster.nodes.values()))
    assert node.labels["kubernetes.azure.com/scalesetpriority"] == "spot"
    assert node.taints == (Taint("kubernetes.azure.com/scalesetpriority", "spot", "NoSchedule"),)


def test_allocatable_is_capacity_minus_reserved() -> None:
    cluster = Cluster(EventLoop(), profile(Pool("real", initial=1)), "0", Journal())
    assert [(node.cpu, node.memory) for node in cluster.nodes.values()] == [(3860, int(13.75 * GI))]


# --- back-off ---------------------------------------------------------------------------------------------------------


def test_a_pod_that_fitted_nowhere_is_tried_again_after_its_back_off_not_before() -> None:
    loop = EventLoop()
    cluster = Cluster(loop, profile(pool(cpu=1), scheduler=Scheduler(0.0)), "0", Journal())
    first, second = (Pod(f"pod-{number}", "default", Shape(1000), ()) for number in range(2))
    cluster.create(first)
    cluster.create(second)
    loop.at(0.25, cluster.kubelet.finish, first)  # there is room long before the back-off of 1 s is over
    loop.run()
    assert second.unschedulable == 0.0
    assert second.scheduled == pytest.approx(1.0)


def test_the_back_off_doubles_up_to_its_maximum_and_newcomers_may_be_quicker() -> None:
    loop = EventLoop()
    cluster = Cluster(loop, profile(pool(cpu=1), scheduler=Scheduler(0.0)), "0", Journal())
    holder, unlucky = (Pod(f"pod-{number}", "default", Shape(1000), ()) for number in range(2))
    cluster.create(holder)
    cluster.create(unlucky)
    loop.run(0.0)
    tried: list[float] = []
    for number in range(8):
        # Whenever there is room, another pod takes it just before the back-off ends.
        newcomer = Pod(f"newcomer-{number}", "default", Shape(1000), ())
        cluster.kubelet.finish(holder)
        loop.run(unlucky.retry_at - 0.01)
        cluster.create(newcomer)
        loop.run(unlucky.retry_at)
        tried.append(loop.now)
        holder = newcomer
    assert [later - earlier for earlier, later in pairwise(tried)] == pytest.approx(
        [2.0, 4.0, 8.0, 10.0, 10.0, 10.0, 10.0]
    )
    assert unlucky.attempts == 9
    assert cluster.scheduler.waiting == 1


# --- preemption -------------------------------------------------------------------------------------------------------


def filled(cpu: int, *priorities: int, nodes: int = 1) -> tuple[EventLoop, Cluster, Journal, list[Pod]]:
    """Nodes full of running pods of one core each."""
    loop, journal = EventLoop(), Journal()
    cluster = Cluster(loop, profile(pool(cpu=cpu, initial=nodes, max=nodes)), "0", journal)
    pods = [Pod(f"pod-{n}", "default", Shape(1000, priority=each), ()) for n, each in enumerate(priorities)]
    for number, pod in enumerate(pods):
        loop.at(float(number), cluster.create, pod)
    loop.run()
    assert all(pod.node is not None for pod in pods)
    return loop, cluster, journal, pods


def comes(loop: EventLoop, cluster: Cluster, cpu: int, priority: int) -> Pod:
    pod = Pod("important", "default", Shape(cpu, priority=priority), ())
    cluster.create(pod)
    loop.run()
    return pod


def test_a_pod_preempts_the_least_important_and_of_those_the_youngest() -> None:
    loop, cluster, journal, pods = filled(4, 5, 0, 0, 0)
    pod = comes(loop, cluster, 2000, 10)
    assert pod.node is not None
    assert journal.saw(Change.PREEMPTED) == [pods[2], pods[3]]
    assert [each.phase for each in pods] == ["Running", "Running", "Failed", "Failed"]
    assert pods[3].preemptor is pod


@pytest.mark.parametrize("priority", [0, 5])
def test_no_pod_of_equal_or_higher_priority_is_preempted(priority: int) -> None:
    loop, cluster, journal, _ = filled(2, 5, 5)
    pod = comes(loop, cluster, 1000, priority)
    assert pod.node is None
    assert not journal.saw(Change.PREEMPTED)


def test_no_pod_is_preempted_if_that_does_not_help() -> None:
    loop, cluster, journal, _ = filled(2, 0, 9)
    assert comes(loop, cluster, 2000, 5).node is None
    assert not journal.saw(Change.PREEMPTED)


def test_the_node_is_chosen_whose_victims_matter_least() -> None:
    loop, cluster, journal, pods = filled(1, 3, 1, 2, nodes=3)
    comes(loop, cluster, 1000, 10)
    assert journal.saw(Change.PREEMPTED) == [pods[1]]


def test_room_that_is_made_for_a_pod_is_kept_for_it() -> None:
    loop, journal = EventLoop(), Journal()
    slow = Kubelet(start=fixed(0.0), pull_overhead_s=0.0, pull_bytes_per_s=1e15, termination_s=5.0)
    its = profile(pool(cpu=2), kubelet=slow, scheduler=Scheduler(0.0))
    cluster = Cluster(loop, its, "0", journal)
    for number in range(2):
        cluster.create(Pod(f"low-{number}", "default", Shape(1000), ()))
    loop.run()
    important = Pod("important", "default", Shape(2000, priority=1), ())
    cluster.create(important)
    loop.run(1.0)
    node = next(iter(cluster.nodes.values()))
    assert important.nominated == node.name
    others = [Pod(f"other-{number}", "default", Shape(1000), ()) for number in range(2)]
    loop.at(2.0, cluster.kubelet.delete, next(iter(node.pods.values())), 0.0)  # one of the two is gone early
    for other in others:
        loop.at(3.0, cluster.create, other)
    loop.run()
    assert important.node is node
    assert important.nominated == ""
    assert all(other.node is None for other in others)


def test_pods_of_higher_priority_are_scheduled_first() -> None:
    loop, journal = EventLoop(), Journal()
    cluster = Cluster(loop, profile(pool(cpu=1), scheduler=Scheduler(pod_s=1.0)), "0", journal)
    pods = [Pod(f"pod-{n}", "default", Shape(1000, priority=p), ()) for n, p in enumerate((0, 0, 7))]
    for pod in pods:
        cluster.create(pod)
    loop.run(2.5)
    assert [pod.scheduled for pod in pods] == [None, None, 1.0]


@settings(deadline=None, max_examples=60)
@given(
    pods=st.lists(st.tuples(st.integers(1, 4), st.integers(0, 3)), min_size=1, max_size=25),
    nodes=st.integers(1, 3),
)
def test_with_preemption_nothing_is_lost_or_overcommitted_and_the_highest_run(
    pods: list[tuple[int, int]], nodes: int
) -> None:
    loop, journal = EventLoop(), Journal()
    cluster = Cluster(loop, profile(pool(cpu=4, initial=nodes, max=nodes)), "0", journal)
    made = [Pod(f"pod-{n}", "default", Shape(c * 1000, priority=p), ()) for n, (c, p) in enumerate(pods)]
    for number, pod in enumerate(made):
        loop.at(float(number), cluster.create, pod)
    loop.run()
    gone = journal.saw(Change.GONE)
    assert {pod.name for pod in made} == {pod.name for pod in gone} | set(cluster.pods)
    assert set(journal.saw(Change.PREEMPTED)) == set(gone)
    for node in cluster.nodes.values():
        assert node.cpu_free == 4000 - sum(pod.shape.cpu for pod in node.pods.values())
    waiting = [pod for pod in made if pod.node is None]
    assert cluster.scheduler.waiting == len(waiting)
    for pod in waiting:  # no node has so much that is free or held by the less important
        for node in cluster.nodes.values():
            lower = sum(each.shape.cpu for each in node.pods.values() if each.shape.priority < pod.shape.priority)
            assert node.cpu_free + lower < pod.shape.cpu
