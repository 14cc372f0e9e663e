"""Runs on the simulated platform that are terminated, retried or deleted, and how long their workflows are kept."""

from dataclasses import replace

import pytest

from harness.simulator.cluster import Change
from harness.simulator.engine.distributions import fixed
from harness.simulator.kfp.errors import Code, RpcError
from harness.simulator.platform import Platform
from harness.simulator.profile import ArtifactStore
from harness.simulator.workflows.graph import Graph, Limits
from harness.simulator.workflows.workflow import Workflow
from tests.support.platforms import GI, ONE_SECOND, Journal, profile, submit, upload


def test_terminating_a_run_ends_its_pods_and_lets_it_fail() -> None:
    platform = Platform(profile())
    run = submit(platform, upload(platform))[0]
    platform.loop.run(0.5)
    platform.server.terminate(run.id)
    assert (run.state, run.history[-1][1]) == ("CANCELING", "RUNNING")
    platform.loop.run(10)
    assert run.state == "FAILED"
    assert [state for _, state in run.history] == ["PENDING", "", "RUNNING", "CANCELING", "FAILED"]
    assert all(pod.over for pod in platform.cluster.pods.values())
    with pytest.raises(RpcError) as refused:
        platform.server.terminate(run.id)
    assert refused.value.code is Code.INVALID_ARGUMENT


def test_a_retried_run_keeps_its_successful_steps() -> None:
    journal = Journal()
    store = ArtifactStore(capacity=GI, used=0.985 * GI, timeout_s=1.0, request_s=0.0)
    steps = (replace(ONE_SECOND, match="train", output=fixed(50 * 2**20)), ONE_SECOND)
    platform = Platform(profile(steps=steps, store=store), listener=journal)
    run = submit(platform, upload(platform))[0]
    platform.loop.run(10)
    assert run.state == "FAILED"
    platform.store.used = 0.0
    platform.server.retry(run.id)
    platform.loop.run(20)
    assert run.state == "SUCCEEDED"
    assert sum(pod.task == "prepare" and pod.role == "executor" for pod in journal.saw(Change.CREATED)) == 1


def test_finished_workflows_and_their_pods_are_kept_for_the_ttl() -> None:
    quick = profile().controller
    platform = Platform(profile(controller=replace(quick, ttl_s=60.0)))
    run = submit(platform, upload(platform))[0]
    platform.loop.run(62.9)
    assert len(platform.cluster.pods) == 7
    platform.loop.run(63.1)
    assert not platform.cluster.pods
    assert run.state == "SUCCEEDED"  # the database keeps it


def test_the_database_deletes_ended_runs_after_their_retention_time() -> None:
    platform = Platform(profile(api=replace(profile().api, retention_s=60.0)))
    version = upload(platform)
    first = submit(platform, version)[0]
    platform.loop.run(50)
    second = submit(platform, version)[0]
    platform.loop.run(59.9 + (first.finished or 0.0))
    assert platform.server.run(first.id).state == "SUCCEEDED"
    platform.loop.run(61 + (first.finished or 0.0))
    with pytest.raises(RpcError) as refused:
        platform.server.run(first.id)
    assert refused.value.code is Code.NOT_FOUND
    assert first.workflow is not None
    assert first.workflow.key in platform.controller.workflows, "Argo keeps it for its own time"
    assert platform.server.run(second.id).state == "SUCCEEDED"


def test_a_run_may_be_deleted_before_its_workflow_is() -> None:
    quick = profile().controller
    platform = Platform(profile(controller=replace(quick, ttl_s=60.0)))
    run = submit(platform, upload(platform))[0]
    platform.loop.run(10)
    platform.server.delete_run(run.id)
    platform.loop.run(100)
    assert not platform.cluster.pods
    assert not platform.controller.workflows


def test_a_retry_restarts_the_ttl_of_a_run() -> None:
    quick = profile().controller
    steps = (replace(ONE_SECOND, match="train", failing=1.0, duration=fixed(20.0)), ONE_SECOND)
    platform = Platform(profile(controller=replace(quick, ttl_s=30.0), steps=steps))
    run = submit(platform, upload(platform))[0]
    platform.loop.run(40)
    platform.server.retry(run.id)
    platform.loop.run(55)  # the first end, after 21 s, is more than the TTL ago
    assert run.state == "RUNNING"
    platform.loop.run(89)
    assert (run.state, run.finished) == ("FAILED", pytest.approx(60.0))
    assert platform.controller.workflows
    platform.loop.run(91)
    assert not platform.controller.workflows


@pytest.mark.parametrize(
    ("config", "failing", "kept_s"),
    [
        ({}, 0.0, 3600.0), ({"resourceTtlOnCompletion": 60}, 0.0, 60.0), ({"resourceTtlOnSuccess": 60}, 1.0, 3600.0),
        ({"resourceTtlOnCompletion": 60, "resourceTtlOnFailure": 90}, 1.0, 90.0),
    ],
)  # fmt: skip
def test_a_pipeline_can_say_how_long_its_workflows_are_kept(config, failing, kept_s):
    graph = Graph((), Limits.of(config))
    workflow = Workflow("r", "w", "kubeflow", graph=graph, parameters={}, created=0.0)
    workflow.phase = "Failed" if failing else "Succeeded"
    assert workflow.keep_s(3600.0) == kept_s
