"""The controller's client: limits per API group, requests in the background, and how many events a workflow has."""

from typing import Any

import pytest
from kfp import dsl

from harness.simulator.engine.events import EventLoop
from harness.simulator.engine.queues import TokenBucket
from harness.simulator.platform import Platform
from harness.simulator.profile import Controller, Requests
from harness.simulator.workflows.client import Background, Client
from harness.simulator.workflows.workflow import Workflow
from tests.support.kfp_sdk import compiled, step
from tests.support.measured import ONE_POD
from tests.support.platforms import profile, submit, upload


@pytest.mark.parametrize(
    ("at", "taken", "spare"), [(0.0, 0, 10), (0.0, 4, 6), (0.0, 12, 0), (1.0, 12, 3), (9.0, 12, 10)]
)
def test_the_spare_tokens_of_a_bucket(at: float, taken: int, spare: int) -> None:
    bucket = TokenBucket(5.0, 10)
    for _ in range(taken):
        bucket.take(0.0)
    assert bucket.spare(at) == spare


def test_requests_in_the_background_get_one_turn_of_many_in_a_busy_bucket_and_all_of_an_idle_one() -> None:
    loop = EventLoop()
    bucket = TokenBucket(20.0, 1)
    events = Background(loop, bucket, 1)

    def work(left: int) -> None:
        if left:
            loop.at(bucket.take(loop.now), work, left - 1)

    for _ in range(9):
        work(20)
    events.add(400)
    assert events.lag_s > 400 / 20.0
    loop.run(10.0)  # 200 tokens, of which nine workers want 180
    assert events.sent == pytest.approx(20, abs=2)
    loop.run(19.0)
    assert events.sent == pytest.approx(20 + 180, abs=3)
    loop.run()
    assert (events.sent, events.waiting) == (400, 0)


def test_what_waits_for_requests_in_the_background_happens_in_order_when_they_are_sent() -> None:
    loop = EventLoop()
    bucket, told = TokenBucket(10.0, 1), list[tuple[str, float]]()
    events = Background(loop, bucket, 1)

    def tell(name: str) -> None:
        told.append((name, loop.now))

    events.when_sent(lambda: tell("nothing"))
    bucket.take(0.0, 21)  # two seconds' worth
    events.add(10)
    events.when_sent(lambda: tell("ten"))
    loop.run(2.5)
    events.add(20)
    events.when_sent(lambda: tell("thirty"))
    loop.run(5.0)
    events.when_sent(lambda: tell("nothing more"))
    loop.run()
    assert [name for name, _ in told] == ["nothing", "ten", "thirty", "nothing more"]
    assert [at for _, at in told] == pytest.approx([0.0, 3.0, 5.0, 5.0], abs=0.1)


def test_pods_and_workflows_have_limits_of_their_own() -> None:
    client = Client(EventLoop(), Controller(qps=5.0, burst=1))
    for _ in range(20):
        client.core.take(0.0)
    assert client.workflows.take(0.0) == 0.0
    client.rate, client.burst = 50.0, 7
    assert {(each.rate, each.burst) for each in (client.core, client.workflows)} == {(50.0, 7)}


@pytest.mark.parametrize(
    ("controller", "counts"),
    [
        ({}, {"configmaps get": 1, "pods create": 7, "workflowtaskresults deletecollection": 1}),
        ({"requests": Requests(start=0, pod=2, results=0)}, {"pods create": 14}),
    ],
)
def test_the_requests_of_a_run_are_those_of_the_version(controller: dict[str, Any], counts: dict[str, int]) -> None:
    quick: dict[str, Any] = {"qps": 1e6, "burst": 10**6, "operation_s": 0.0, "settle_s": 0.0, "requeue_s": 0.0}
    platform = Platform(profile(controller=Controller(**quick, **controller)))
    submit(platform, upload(platform))
    platform.loop.run(100)
    found = {name: count for name, count in platform.controller.client.counts.items() if count}
    del found["workflows update"]
    assert found == counts


@pytest.mark.parametrize(
    ("settings", "after_s"),
    [
        ({}, 1.0),
        ({"cpu": 2.0}, 2.0),  # four reconciliations of a second each on two CPUs
        ({"cpu": 8.0}, 1.0),
    ],
)
def test_reconciliations_share_the_controllers_cpu(settings: dict[str, Any], after_s: float) -> None:
    quick: dict[str, Any] = {"qps": 1e6, "burst": 10**6, "operation_s": 1.0, "settle_s": 0.0}
    platform = Platform(profile(controller=Controller(**quick, **settings)))
    workflows = [Workflow(f"w{k}", f"w{k}", "", graph=ONE_POD, parameters={}, created=0.0) for k in range(4)]
    for each in workflows:
        platform.controller.add(each)
    platform.loop.run(10.0)
    assert [each.started for each in workflows] == pytest.approx([after_s] * 4)


@pytest.mark.parametrize(
    ("settings", "sleeps_s"),
    [({"argo": "3.5"}, 0.0), ({"argo": "4.1"}, 0.0), ({}, 1.0), ({"argo": "3.5", "settle_s": 2.0}, 2.0)],
)
def test_only_the_measured_version_sleeps_after_an_update(settings: dict[str, Any], sleeps_s: float) -> None:
    """With one worker, a second workflow starts after the first one's update, and the sleep."""
    platform = Platform(profile(controller=Controller(workers=1, qps=1e6, burst=10**6, operation_s=0.5, **settings)))
    workflows = [Workflow(f"w{k}", f"w{k}", "", graph=ONE_POD, parameters={}, created=0.0) for k in range(2)]
    for each in workflows:
        platform.controller.add(each)
    platform.loop.run(5.0)
    assert [each.started for each in workflows] == pytest.approx([0.5, 1.0 + sleeps_s])


def test_a_workflow_has_the_nodes_and_events_that_were_recorded(tmp_path: Any) -> None:
    """Recorded: 60 nodes, three of them skipped executors without events, and 116 events."""

    @dsl.pipeline
    def inner():
        step()
        step()

    @dsl.pipeline
    def nested_loop():
        inner()
        with dsl.ParallelFor([1, 2, 3]):
            step()

    platform = Platform(profile())
    three, nested = upload(platform), upload(platform, compiled(tmp_path, nested_loop))
    assert three.graph is not None
    assert three.graph.nodes == 24
    (run,) = submit(platform, nested)
    platform.loop.run(100)
    assert run.workflow is not None
    # Of the three executors that were skipped there, each has two nodes and four events here.
    assert run.workflow.graph.nodes == 60 + 3
    assert platform.controller.client.events.sent == 116 + 3 * 4
