"""The autoscaler against tables worked out by hand: it looks every 10 s, a machine of 4 cores takes 60 s."""

from dataclasses import replace
from typing import Any

import pytest

from harness.simulator.cluster import Change, Cluster, Pod, Shape
from harness.simulator.engine.events import EventLoop
from harness.simulator.profile import Pool
from tests.support.platforms import Journal, pool, profile, slower_autoscaler

CORE = Shape(1000)


def grow(*pools: Pool, at: float = 3.0, pods: int = 1, shape: Shape = CORE, runs_s: float = 1e6, **more: Any):
    loop, journal = EventLoop(), Journal()
    cluster = Cluster(loop, profile(*pools, autoscaler=slower_autoscaler(**more)), "0", journal)
    made = [
        Pod(f"pod-{n}", "default", shape, (), on_running=lambda p: loop.after(runs_s, cluster.kubelet.finish, p))
        for n in range(pods)
    ]
    for pod in made:
        loop.at(at, cluster.create, pod)
    return loop, cluster, journal, made


@pytest.mark.parametrize(
    ("pods", "most", "nodes"),
    [
        (4, 10, 1),  # all fit on the one that is there
        (5, 10, 2),
        (8, 10, 2),
        (9, 10, 3),
        (41, 10, 10),  # 11 would be needed: the maximum holds
        (17, 3, 3),
    ],
)
def test_as_many_nodes_come_as_the_pods_need(pods: int, most: int, nodes: int) -> None:
    loop, cluster, _, _ = grow(pool(max=most), pods=pods)
    loop.run(200)
    assert len(cluster.nodes) == nodes


def test_a_node_is_requested_at_the_next_scan_and_ready_after_its_provisioning_time() -> None:
    loop, cluster, journal, pods = grow(pool(max=3), pods=5)
    loop.run(200)
    new = max(cluster.nodes.values(), key=lambda node: node.index)
    assert new.created == pytest.approx(10 + 0.85 * 60)
    assert new.ready == pytest.approx(70.0)
    assert pods[4].scheduled == pytest.approx(70.0)
    details = [detail for _, change, detail in journal.pods if change is Change.SCALE_UP]
    assert details == ["pod triggered scale-up: [{pool 1->2 (max: 3)}]"]


@pytest.mark.parametrize(
    ("first", "at", "asked"), [(4.5, 3.0, 4.5), (4.5, 4.5, 14.5), (4.5, 5.0, 14.5), (10.0, 3.0, 10.0)]
)
def test_scans_follow_the_first_one(first: float, at: float, asked: float) -> None:
    loop, cluster, _, _ = grow(pool(max=3), pods=5, at=at, first_scan_s=first)
    loop.run(200)
    assert max(node.ready for node in cluster.nodes.values()) == pytest.approx(asked + 60)


def test_scans_go_on_where_their_times_are_rounded() -> None:
    loop, cluster, _, _ = grow(pool(max=1), pods=9, first_scan_s=1.903946592, scan_s=0.7)
    loop.run(2000)
    assert loop.now == 2000
    assert len(cluster.nodes) == 1


def test_upcoming_nodes_are_not_requested_again() -> None:
    loop, cluster, _, _ = grow(pool(max=10), pods=5)
    loop.run(65)  # six looks later
    assert cluster.autoscaler is not None
    assert len(cluster.nodes) + cluster.autoscaler.upcoming["pool"] == 2


def test_pods_that_no_new_node_would_help_say_why() -> None:
    loop, cluster, journal, _ = grow(pool(max=1), pods=5)
    loop.run(100)
    details = [detail for _, change, detail in journal.pods if change is Change.NO_SCALE_UP]
    assert details == ["pod didn't trigger scale-up: 1 max node group size reached"]
    assert len(cluster.nodes) == 1


def test_idle_nodes_go_after_the_unneeded_time_but_not_below_the_minimum() -> None:
    """Four pods run from 3 to 103 on the first node, eight from 70 to 170 on two new ones."""
    loop, cluster, _, _ = grow(pool(max=5, min=1), pods=12, runs_s=100.0, unneeded_s=300.0, after_add_s=0.0)
    sizes = {}
    for at in (65, 75, 405, 415, 465, 485):
        loop.run(at)
        sizes[at] = len(cluster.nodes)
    assert sizes == {65: 3, 75: 3, 405: 3, 415: 2, 465: 2, 485: 1}
    loop.run()
    assert len(cluster.nodes) == 1
    assert loop.now < 500


def test_no_node_goes_for_a_while_after_one_was_added() -> None:
    """Two nodes were requested at 10; they are idle from 170 on, and not needed for longer than 10 s."""
    loop, cluster, _, _ = grow(pool(max=5, min=1), pods=12, runs_s=100.0, unneeded_s=10.0, after_add_s=400.0)
    sizes = {}
    for at in (200, 405, 425):
        loop.run(at)
        sizes[at] = len(cluster.nodes)
    assert sizes == {200: 3, 405: 3, 425: 1}


@pytest.mark.parametrize(("expander", "chosen"), [("least-waste", "small"), ("price", "large")])
def test_the_expander_chooses_between_pools(expander: str, chosen: str) -> None:
    pools = (pool("small", cpu=2, initial=0, max=5, price=1.0), pool("large", cpu=8, initial=0, max=5, price=0.5))
    loop, cluster, _, _ = grow(*pools, pods=2, expander=expander)
    loop.run(200)
    assert {node.pool.name for node in cluster.nodes.values()} == {chosen}


def test_a_failed_node_request_is_repeated() -> None:
    loop, cluster, _, pods = grow(pool(max=3), pods=5, failing=1.0)
    loop.run(100)
    assert len(cluster.nodes) == 1
    assert cluster.autoscaler is not None
    cluster.autoscaler.settings = replace(cluster.autoscaler.settings, failing=0.0)
    loop.run(300)
    assert pods[4].scheduled is not None


def test_an_idle_platform_has_nothing_left_to_do() -> None:
    loop, _, _, _ = grow(pool(max=3, min=1), pods=1, runs_s=1.0)
    loop.run()
    assert loop.now < 30
