"""How machines of spot pools are taken back, what becomes of their pods, and when there are machines again."""

from dataclasses import replace
from random import Random
from typing import Any

import pytest

from harness.simulator.cluster import Change, Cluster, Node, Pod, Shape
from harness.simulator.cluster.shapes import Toleration
from harness.simulator.cluster.spot import SpotMarket
from harness.simulator.engine.distributions import fixed
from harness.simulator.engine.events import EventLoop
from harness.simulator.profile import Eviction, Kubelet, Pool
from harness.simulator.profile.prices import PriceSeries
from tests.support.platforms import Journal, pool, profile, slower_autoscaler

CORE = Shape(1000, tolerations=(Toleration(operator="Exists"),))
DAY_S = 86_400.0


def spot(name: str = "spot", *, rate: float = 0.0, initial: int = 1, most: int = 1, **eviction: Any) -> Pool:
    return pool(name, spot=True, initial=initial, max=most, evictions_per_hour=rate, eviction=Eviction(**eviction))


def cluster_of(*pools: Pool, grows: bool = False) -> tuple[EventLoop, Cluster, Journal]:
    loop, journal = EventLoop(), Journal()
    scaler = slower_autoscaler() if grows else None
    settings = replace(profile(*pools, autoscaler=scaler), kubelet=Kubelet(start=fixed(0.0), termination_s=1.0))
    return loop, Cluster(loop, settings, "0", journal), journal


def at_work(cluster: Cluster, name: str = "pod") -> Pod:
    """A pod that computes for a day."""

    def work(pod: Pod) -> None:
        assert pod.node is not None
        pod.station = pod.node.processor
        pod.job = pod.station.add(DAY_S, 0.1, cluster.kubelet.finish, pod)

    pod = Pod(name, "default", CORE, (), on_running=work)
    cluster.create(pod)
    return pod


@pytest.mark.parametrize(
    ("eviction", "label", "ended_s", "deleted", "off_s"),
    [
        # Nothing on notice: the pod is found by garbage collection, as of any dead machine.
        ({}, ("kubernetes.azure.com/scalesetpriority", "spot"), 220.0, True, 130.0),
        ({"cloud": "gke"}, ("cloud.google.com/gke-spot", "true"), 101.0, False, 130.0),
        ({"cloud": "eks"}, ("eks.amazonaws.com/capacityType", "SPOT"), 101.0, True, 220.0),
        ({"cloud": "karpenter"}, ("karpenter.sh/capacity-type", "spot"), 101.0, True, 220.0),
        ({"cloud": "eks", "notice": 60.0}, ("eks.amazonaws.com/capacityType", "SPOT"), 101.0, True, 160.0),
        ({"on_notice": "drain"}, ("kubernetes.azure.com/scalesetpriority", "spot"), 101.0, True, 130.0),
    ],
)
def test_on_notice_each_cloud_treats_its_pods_in_its_own_way(
    eviction: dict[str, Any], label: tuple[str, str], ended_s: float, deleted: bool, off_s: float
) -> None:
    loop, cluster, _ = cluster_of(spot(at=(100.0,), **eviction))
    (node,) = cluster.nodes.values()
    assert label in node.labels.items()
    pod = at_work(cluster)
    loop.run(1000)
    assert node.lost == pytest.approx(off_s)
    assert pod.finished == pytest.approx(ended_s)
    assert (pod.deleting is not None, pod.reason) == (deleted, "Error" if deleted else "Terminated")


def test_a_script_takes_the_oldest_machine_at_each_instant() -> None:
    loop, cluster, journal = cluster_of(spot(initial=3, most=3, at=(100.0, 100.0, 200.0, 300.0)))
    names = list(cluster.nodes)
    loop.run(1000)
    announced = [node.name for node, reason in journal.nodes if reason == "PreemptScheduled"]
    assert announced == names


def test_machines_live_as_long_as_the_rate_says_on_average() -> None:
    """With 6 evictions an hour of each machine, lifetimes have the mean 600 s; of 400, the mean is within 4 errors."""
    loop, _, journal = cluster_of(spot(initial=400, most=400, rate=6.0))
    taken: list[float] = []
    journal.node_changed = lambda node, reason="", message="": (  # type: ignore[method-assign]
        taken.append(loop.now) if reason == "PreemptScheduled" else None
    )
    loop.run(DAY_S)
    assert len(taken) == 400
    assert sum(taken) / 400 == pytest.approx(600.0, abs=4 * 600 / 20)


def test_a_deallocated_node_stays_with_its_pods_until_the_autoscaler_removes_it() -> None:
    loop, cluster, journal = cluster_of(spot(policy="deallocate", at=(100.0,)), grows=True)
    pod, (node,) = at_work(cluster), cluster.nodes.values()
    loop.run(469.0)  # off at 130 s, noticed at 170 s
    assert (pod.deleting, journal.saw(Change.GONE)) == (None, [])
    loop.run(471.0)  # pods tolerate an unreachable node for 300 s
    assert (pod.deleting, journal.saw(Change.GONE)) == (pytest.approx(470.0), [])
    assert list(cluster.nodes) == [node.name]  # it counts for the pool, whose maximum is one
    loop.run(1371.0)
    assert (node.gone, pod.finished) == (pytest.approx(1370.0), pytest.approx(1370.0))


def test_a_deallocated_machine_comes_back_without_its_pods_and_takes_others() -> None:
    loop, cluster, _ = cluster_of(spot(policy="deallocate", at=(100.0,), returns=fixed(600.0)))
    first, (node,) = at_work(cluster), cluster.nodes.values()
    loop.run(600.0)
    second = at_work(cluster, "second")
    loop.run(699.0)
    assert (second.node, first.over) == (None, False)
    loop.run(720.0)
    assert (second.node, node.ready) == (node, pytest.approx(700.0))
    assert (first.over, node.lost, node.unreachable) == (True, None, None)


class Thousand(Random):
    """Draws 1,000 s for every machine."""

    def expovariate(self, lambd: float = 1.0) -> float:
        del lambd
        return 1000.0


class Evicted:
    """A cluster that only notes what is taken from it."""

    def __init__(self, loop: EventLoop) -> None:
        self.loop = loop
        self.at: list[float] = []

    def pool_nodes(self, pool: Pool) -> list[Node]:
        del pool
        return []

    def evict_node(self, node: Node) -> None:
        del node
        self.at.append(self.loop.now)


def test_a_machine_that_is_back_lives_as_long_as_a_new_one() -> None:
    loop = EventLoop()
    cluster = Evicted(loop)
    market, node = (
        SpotMarket(loop, Thousand(), cluster.pool_nodes, cluster.evict_node),
        Node("machine", 1, spot(rate=6.0), loop),
    )
    for ready_s in (0.0, 500.0):
        loop.run(ready_s)
        node.ready = ready_s
        market.follow(node)
    loop.run(5000.0)
    assert cluster.at == [1500.0]


def test_a_machine_that_is_back_before_its_silence_is_noticed_is_not_given_up() -> None:
    """Off after 130 s and back after 140: its silence would be noticed after 170."""
    loop, cluster, journal = cluster_of(spot(policy="deallocate", at=(100.0,), returns=fixed(40.0)))
    (node,) = cluster.nodes.values()
    loop.run(1000.0)
    assert (node.schedulable, node.unreachable) == (True, None)
    assert "NodeNotReady" not in [reason for _, reason in journal.nodes]


def test_while_the_cloud_has_no_spot_machine_another_pool_grows() -> None:
    fallback = pool("steady", initial=0, max=1)
    loop, cluster, _ = cluster_of(spot(at=(100.0,), returns=fixed(1200.0)), fallback, grows=True)
    at_work(cluster)
    loop.run(150.0)
    second = at_work(cluster, "second")
    loop.run(500.0)
    assert second.node is not None
    assert second.node.pool.name == "steady"


def test_the_autoscaler_asks_again_until_the_cloud_has_a_machine() -> None:
    """Refused after 60 s of provisioning, it waits 5 minutes, then 10: the third request is served."""
    loop, cluster, _ = cluster_of(spot(at=(10.0,), returns=fixed(600.0)), grows=True)
    loop.run(50.0)
    pod = at_work(cluster)
    loop.run(3000.0)
    assert pod.scheduled == pytest.approx(50 + 60 + 300 + 60 + 600 + 60, abs=60)


def test_above_the_maximum_price_all_machines_are_taken_and_none_are_given() -> None:
    prices = PriceSeries((0.0, 1000.0, 2000.0), (0.10, 0.30, 0.10))
    loop, cluster, journal = cluster_of(
        replace(spot(initial=2, most=2, max_price=0.2, prices=prices), min=2), grows=True
    )
    first = list(cluster.nodes.values())
    loop.run(999.0)
    assert not [node for node, reason in journal.nodes if reason == "PreemptScheduled"]
    loop.run(1001.0)
    assert [node for node, reason in journal.nodes if reason == "PreemptScheduled"] == first
    pod = at_work(cluster)
    loop.run(1999.0)
    assert pod.scheduled is None
    loop.run(4000.0)
    assert pod.scheduled is not None


def test_a_node_costs_the_mean_of_its_pools_prices_while_it_exists() -> None:
    prices = PriceSeries((0.0, 50.0), (0.10, 0.30))
    loop, cluster, _ = cluster_of(spot(prices=prices), pool("steady", price=0.5))
    cheap, steady = cluster.nodes.values()
    loop.run(100.0)
    assert cluster.spot.price(cheap) == pytest.approx(0.20)
    assert cluster.spot.price(steady) == 0.5
