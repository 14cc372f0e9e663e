"""What the cluster does when a machine dies, or when only its node is deleted."""

from collections.abc import Callable

import pytest

from harness.simulator.cluster import Change, Cluster, Node, Pod, Shape
from harness.simulator.engine.distributions import fixed
from harness.simulator.engine.events import EventLoop
from harness.simulator.engine.queues import ProcessorSharing
from harness.simulator.profile import Kubelet
from tests.support.platforms import Journal, pool, profile


def running(nodes: int = 1, works_s: float = 1000.0) -> tuple[EventLoop, Cluster, Journal, Pod]:
    """A pod that computes on the only node with room for it."""
    loop, journal = EventLoop(), Journal()
    cluster = Cluster(loop, profile(pool(initial=nodes, max=nodes)), "0", journal)

    def work(pod: Pod) -> None:
        assert pod.node is not None
        pod.station = pod.node.processor
        pod.job = pod.station.add(works_s, 1.0, cluster.kubelet.finish, pod)

    pod = Pod("pod", "default", Shape(1000), (), on_running=work)
    cluster.create(pod)
    loop.run(10.0)
    assert pod.phase == "Running"
    return loop, cluster, journal, pod


def host(pod: Pod) -> Node:
    assert pod.node is not None
    return pod.node


def test_a_dead_machine_is_noticed_after_40_s_and_its_pods_fail_when_its_node_has_been_gone_for_40_to_60_s() -> None:
    loop, cluster, journal, pod = running()
    node = host(pod)
    cluster.lose_node(node)
    loop.run(49.9)
    assert (node.schedulable, node.unreachable, journal.saw(Change.NODE_NOT_READY)) == (True, None, [])
    loop.run(50.0)
    assert (node.unreachable, journal.saw(Change.NODE_NOT_READY)) == (50.0, [pod])
    loop.run(200.0)
    assert [reason for each, reason in journal.nodes if each is node and reason][-3:] == [
        "NodeNotReady", "DeletingNode", "RemovingNode",
    ]  # fmt: skip
    assert (node.gone, pod.finished, pod.phase) == (55.0, 60.0 + 40.0, "Failed")
    assert journal.saw(Change.GONE) == [pod]
    assert not cluster.pods


@pytest.mark.parametrize("deleted_at", [10.0, 19.0, 21.0, 39.9])
def test_pods_of_a_deleted_node_are_found_after_40_to_60_s(deleted_at: float) -> None:
    """Measured: 51 s."""
    loop, cluster, _, pod = running()
    loop.run(deleted_at)
    cluster.delete_node(host(pod))
    assert not cluster.nodes
    loop.run(200.0)
    assert pod.phase == "Failed"
    assert pod.finished is not None
    assert 40.0 <= pod.finished - deleted_at <= 60.0


def test_pods_of_a_deleted_node_go_on_as_long_as_its_machine_does() -> None:
    loop, cluster, _, pod = running(works_s=20.0)
    cluster.delete_node(host(pod))
    loop.run(200.0)
    assert pod.phase == "Succeeded"


@pytest.mark.parametrize("event", [Cluster.lose_node, Cluster.evict_node])
def test_a_dead_machine_does_no_work(event: Callable[[Cluster, Node], None]) -> None:
    loop, cluster, _, pod = running(works_s=60.0)
    processor: ProcessorSharing = host(pod).processor
    event(cluster, host(pod))
    loop.run(45.0)
    assert pod.job is None
    loop.run(300.0)
    assert (pod.phase, pod.main_ended) == ("Failed", None)
    assert processor.demand == 0.0


@pytest.mark.parametrize(("works_s", "phase"), [(39.0, "Succeeded"), (41.0, "Failed")])
def test_a_spot_machine_goes_on_for_30_s_after_its_notice(works_s: float, phase: str) -> None:
    """The notice comes at 10."""
    loop, cluster, _, pod = running(works_s=works_s)
    node = host(pod)
    cluster.evict_node(node)
    assert node.cordoned
    loop.run(300.0)
    assert pod.phase == phase


def test_a_pod_that_starts_on_a_machine_when_it_dies_starts_no_more() -> None:
    loop, cluster, _, first = running()
    cluster.kubelet.settings = Kubelet(start=fixed(5.0), pull_overhead_s=5.0)
    pulling, starting = Pod("pulling", "default", Shape(1000), ("image",)), Pod("starting", "default", Shape(1000), ())
    cluster.create(pulling)
    cluster.create(starting)
    loop.run(12.0)
    assert (pulling.pulled, starting.pulled is None) == (None, False)
    cluster.lose_node(host(first))
    loop.run(40.0)
    assert (pulling.phase, pulling.pulled, starting.phase) == ("Pending", None, "Pending")


def test_until_a_dead_machine_is_noticed_pods_are_placed_on_it() -> None:
    loop, cluster, journal, first = running()
    cluster.lose_node(host(first))
    early, late = (Pod(name, "default", Shape(1000), ()) for name in ("early", "late"))
    loop.run(20.0)
    cluster.create(early)
    loop.run(51.0)
    cluster.create(late)
    loop.run(52.0)
    assert (early.node, early.started, late.node) == (host(first), None, None)
    said = cluster.scheduler.ranks.explain(late.shape)
    assert "1 node(s) had untolerated taint {node.kubernetes.io/unreachable: }" in said
    loop.run(200.0)
    assert set(journal.saw(Change.GONE)) == {first, early}


def test_a_pod_deleted_on_a_dead_machine_stays_until_it_is_collected() -> None:
    loop, cluster, journal, pod = running()
    cluster.lose_node(host(pod))
    cluster.kubelet.delete(pod)
    loop.run(99.0)
    assert journal.saw(Change.GONE) == []
    loop.run(101.0)
    assert journal.saw(Change.GONE) == [pod]


def test_a_pod_deleted_by_force_on_a_dead_machine_is_gone_at_once() -> None:
    _, cluster, journal, pod = running()
    cluster.lose_node(host(pod))
    cluster.kubelet.delete(pod)
    cluster.kubelet.delete(pod, 0.0)
    cluster.kubelet.delete(pod, 0.0)
    assert journal.saw(Change.GONE) == [pod]
