import pytest

from harness.simulator.cluster import Change, Cluster, Pod, Requirement, Shape, Toleration
from harness.simulator.events import EventLoop
from harness.simulator.profile import Pool, Profile, Scheduler, Taint
from tests.simulator.platforms import GI, Journal, pool, profile

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
        (Shape(1000, requirements=(Requirement("agentpool", "In", ("gpu",)),)), None),
        (Shape(1000, requirements=(Requirement("agentpool", "NotIn", ("gpu",)),)), "plain"),
        (Shape(1000, requirements=(Requirement("agentpool", "In", ("gpu", "plain")),)), "plain"),
        (Shape(1000, requirements=(Requirement("no-such-label", "Exists"),)), None),
        (Shape(1000, requirements=(Requirement("no-such-label", "DoesNotExist"),)), "plain"),
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
            Shape(1000, requirements=(Requirement("zone", "In", ("a",)),)),
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
    assert cluster.scheduler.explain(shape).startswith(message)


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


def test_a_cordoned_node_takes_no_pod_until_it_is_uncordoned() -> None:
    loop = EventLoop()
    cluster = Cluster(loop, profile(pool()), "0", Journal())
    node = next(iter(cluster.nodes.values()))
    cluster.cordon(node, cordoned=True)
    pod = Pod("pod", "default", Shape(1000), ())
    cluster.create(pod)
    loop.run(10)
    assert pod.node is None
    assert "1 node(s) were unschedulable" in cluster.scheduler.explain(pod.shape)
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


def test_allocatable_is_what_the_machine_has_without_what_it_keeps() -> None:
    cluster = Cluster(EventLoop(), profile(Pool("real", initial=1)), "0", Journal())
    assert [(node.cpu, node.memory) for node in cluster.nodes.values()] == [(3860, int(13.75 * GI))]
