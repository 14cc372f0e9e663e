"""Which ends of a step's pod are tried again, and when: Argo's retry strategy as KFP compiles it."""

import json
from collections.abc import Callable
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import pytest

from harness.simulator.cluster import Change, Pod
from harness.simulator.cluster.kubelet import Kubelet
from harness.simulator.engine.distributions import fixed
from harness.simulator.kfp.records import Run
from harness.simulator.platform import Platform
from harness.simulator.profile import Eviction, Step
from harness.simulator.profile import Kubelet as KubeletSettings
from harness.simulator.workflows.graph import EXECUTOR
from harness.simulator.workflows.launcher import Launch
from harness.simulator.workflows.retry import RetryStrategy
from harness.simulator.workflows.workflow import ERROR, FAILED
from tests.support.platforms import UNCACHED, Journal, pool, profile, submit, upload

TASK = b"        taskInfo:\n          name: prepare"


@pytest.mark.parametrize(
    ("strategy", "state", "attempts", "since_first_s", "wait_s"),
    [
        (RetryStrategy(2, "OnError"), ERROR, 1, 0.0, 0.0),
        (RetryStrategy(2, "OnError"), FAILED, 1, 0.0, None),
        (RetryStrategy(2, "OnFailure"), ERROR, 1, 0.0, None),
        (RetryStrategy(2, "OnFailure"), FAILED, 1, 0.0, 0.0),
        (RetryStrategy(2, "Always"), ERROR, 2, 0.0, 0.0),
        (RetryStrategy(2, "Always"), FAILED, 3, 0.0, None),
        (RetryStrategy(0, "Always"), FAILED, 1, 0.0, None),
        (RetryStrategy(9, "Always", 5.0, 2.0), FAILED, 1, 0.0, 5.0),
        (RetryStrategy(9, "Always", 5.0, 2.0), FAILED, 4, 0.0, 40.0),
        (RetryStrategy(9, "Always", 300.0, 1.0), FAILED, 4, 0.0, 300.0),
        # The time counts from the first attempt's start, the wait included.
        (RetryStrategy(9, "Always", 300.0, 1.0, 3600.0), FAILED, 1, 3300.0, 300.0),
        (RetryStrategy(9, "Always", 300.0, 1.0, 3600.0), FAILED, 1, 3301.0, None),
        (RetryStrategy(2000, "Always", 1.0, 1e9, inf), FAILED, 1999, 0.0, 1e9),
    ],
)
def test_whether_and_when_a_step_is_tried_again(
    strategy: RetryStrategy, state: str, attempts: int, since_first_s: float, wait_s: float | None
) -> None:
    assert strategy.wait_s(state, attempts, since_first_s) == wait_s


RECORDED = json.loads((Path(__file__).parents[2] / "data" / "real" / "retries.json").read_text())["recorded"]
_REQUEUE_S = 10.0  # Argo notices a pod's end within this time


@pytest.mark.parametrize("recorded", RECORDED, ids=lambda each: each["name"])
def test_recorded_steps_were_tried_again_when_the_strategy_says_so(recorded: dict[str, Any]) -> None:
    settings = {name: recorded[name] for name in ("backoff_s", "factor", "max_s") if name in recorded}
    strategy = RetryStrategy(recorded["limit"], recorded["policy"], **settings)
    attempts = recorded["attempts"]
    for number, (state, _, over_s) in enumerate(attempts, 1):
        if over_s is None:
            continue
        wait_s = strategy.wait_s(state, number, over_s)
        assert (wait_s is not None) is (number < len(attempts))
        if wait_s is not None:
            assert wait_s <= attempts[number][1] - over_s <= wait_s + _REQUEUE_S


def started(
    *, policy: str = "", retries: str = "", takes_s: float = 100.0, checkpoint_s: float = 0.0
) -> tuple[Platform, Journal, Run]:
    """A run whose first step is at work after half a second; it has the `retries` of its task, if any."""
    step = Step(
        duration=fixed(takes_s), output=fixed(0.0), memory=fixed(1.0), cpu=fixed(0.01), checkpoint_s=checkpoint_s
    )
    journal, controller = Journal(), replace(profile().controller, retry_policy=policy)
    platform = Platform(profile(pool(initial=2), steps=(step,), controller=controller), listener=journal)
    run = submit(platform, upload(platform, UNCACHED.replace(TASK, retries.encode() + TASK)))[0]
    platform.loop.run(0.5)
    return platform, journal, run


def at_work(platform: Platform) -> Pod:
    (pod,) = [pod for pod in platform.cluster.pods.values() if pod.role == "executor" and not pod.over]
    return pod


def attempts(journal: Journal) -> list[Pod]:
    return [pod for pod in journal.saw(Change.CREATED) if pod.role == "executor" and pod.task == "prepare"]


def delete(kubelet: Kubelet, pod: Pod) -> None:
    kubelet.delete(pod)


def evict(kubelet: Kubelet, pod: Pod) -> None:
    kubelet.stop_work(pod)
    kubelet.finish(pod, 137, "Evicted", "The node was low on resource: memory.")


@pytest.mark.parametrize(
    ("lose", "policy", "again"),
    [
        (delete, "", True),  # KFP's default, OnError: recorded with its ConfigMap
        (delete, "OnFailure", False),  # recorded: ends in the state Error
        (delete, "Always", True),
        (evict, "", False),  # recorded: ends in the state Failed, and KFP does not try it again
        (evict, "OnFailure", True),
        (evict, "Always", True),
    ],
)
def test_a_deleted_pod_is_an_error_and_one_that_its_kubelet_evicted_is_a_failure(
    lose: Callable[[Kubelet, Pod], None], policy: str, again: bool
) -> None:
    platform, journal, run = started(policy=policy)
    lose(platform.cluster.kubelet, at_work(platform))
    platform.loop.run(1000)
    assert len(attempts(journal)) == (2 if again else 1)
    assert run.state == ("SUCCEEDED" if again else "FAILED")


def policy_of(count: int, backoff: str, most: str) -> str:
    return (
        f"        retryPolicy:\n          maxRetryCount: {count}\n          backoffDuration: {backoff}\n"
        f"          backoffFactor: 1.0\n          backoffMaxDuration: {most}\n"
    )


def test_the_longest_back_off_is_the_time_in_which_all_attempts_begin_and_end() -> None:
    """Three tries of 100 s, each lost after 60: with 200 s in all, the third is ended when the time is over."""
    platform, journal, run = started(retries=policy_of(9, "5s", "200s"))
    for lost_at in (60.0, 125.0):
        platform.loop.run(lost_at)
        platform.cluster.kubelet.delete(at_work(platform))
    platform.loop.run(199.0)
    third = at_work(platform)
    platform.loop.run(1000)
    assert (third.finished, third.exit_code) == (pytest.approx(200.0, abs=0.1), 143)
    assert (len(attempts(journal)), run.state) == (3, "FAILED")


def test_no_attempt_follows_when_its_back_off_would_end_after_that_time() -> None:
    platform, journal, run = started(retries=policy_of(9, "150s", "200s"))
    platform.loop.run(60.0)
    platform.cluster.kubelet.delete(at_work(platform))
    platform.loop.run(1000)
    assert (len(attempts(journal)), run.state) == (1, "FAILED")


def test_the_first_attempt_may_take_longer_than_that_time() -> None:
    platform, journal, run = started(retries=policy_of(9, "5s", "50s"))
    platform.loop.run(1000)
    assert (len(attempts(journal)), run.state) == (1, "SUCCEEDED")


@pytest.mark.parametrize(("checkpoint_s", "second_s"), [(0.0, 100.0), (30.0, 40.0), (100.0, 100.0), (7.0, 37.0)])
def test_a_step_with_checkpoints_resumes_from_the_latest(checkpoint_s: float, second_s: float) -> None:
    """Lost after 69.5 of 100 s; the third attempt after 20 more: what both saved counts."""
    platform, journal, run = started(checkpoint_s=checkpoint_s)
    platform.loop.run(69.5)
    platform.cluster.kubelet.delete(at_work(platform))
    platform.loop.run(400)
    second = attempts(journal)[1]
    assert second.main_ended == pytest.approx(69.5 + second_s, abs=1e-3)
    assert run.state == "SUCCEEDED"


def test_checkpoints_of_all_attempts_add_up() -> None:
    platform, journal, _ = started(checkpoint_s=30.0)
    for lost_at in (65.0, 100.0):  # saved: 60 s, then 30 of the 35 s more
        platform.loop.run(lost_at)
        platform.cluster.kubelet.delete(at_work(platform))
    platform.loop.run(400)
    assert attempts(journal)[2].main_ended == pytest.approx(110.0, abs=1e-3)


@pytest.mark.parametrize(("cloud", "state"), [("aks", "SUCCEEDED"), ("eks", "SUCCEEDED"), ("gke", "FAILED")])
def test_under_kfps_defaults_a_run_survives_a_lost_machine_unless_the_kubelet_ended_its_pods_before(
    cloud: str, state: str
) -> None:
    machines = pool(spot=True, initial=2, eviction=Eviction(cloud=cloud, at=(20.0,)))
    pods = replace(machines, name="other", spot=False, initial=1, eviction=Eviction())
    step = Step(duration=fixed(100.0), output=fixed(0.0), memory=fixed(1.0), cpu=fixed(0.01))
    platform = Platform(profile(machines, pods, steps=(step,)))
    for node in platform.cluster.nodes.values():  # every pod tolerates them
        node.taints = ()
        node.special = True
    run = submit(platform, upload(platform))[0]
    platform.loop.run(10.0)
    (busy,) = {pod.node for pod in platform.cluster.pods.values() if pod.role == "executor"}
    assert busy is not None
    platform.cluster.evict_node(busy)
    platform.loop.run(2000)
    assert run.state == state


@pytest.mark.parametrize("waits_after_s", [5.0, 15.0], ids=["reading", "writing"])
def test_a_pod_that_is_shut_down_while_it_waits_for_the_store_does_nothing_more(waits_after_s: float) -> None:
    """It starts after a second, reads, and computes for 5 s; the store gives a request up after 20 s."""
    step = Step(duration=fixed(5.0), output=fixed(1e6), memory=fixed(1.0), cpu=fixed(0.01))
    platform = Platform(profile(pool(initial=2), steps=(step,), kubelet=KubeletSettings(start=fixed(1.0))))
    run = submit(platform, upload(platform))[0]
    while not (found := [pod for pod in platform.cluster.pods.values() if (pod.role, pod.task) == (EXECUTOR, "train")]):
        platform.loop.run(platform.loop.now + 0.1)
    (train,) = found
    if waits_after_s > 10.0:
        platform.loop.run(platform.loop.now + 3.0)  # it has read
    platform.store.unreachable = lambda _: True
    platform.loop.run(platform.loop.now + waits_after_s)
    assert isinstance(train.launch, Launch)
    assert (train.launch.uploading is not None) is (waits_after_s > 10.0)
    platform.cluster.kubelet.shut_down(train)
    over_s, error = train.finished, train.launch.error
    platform.loop.run(1000)
    assert (train.reason, train.finished, train.main_ended, train.job) == ("Terminated", over_s, over_s, None)
    assert train.launch.error == error or waits_after_s > 10.0
    assert run.state == "FAILED"
