"""Steps on the simulated platform: what slows them, how they fail, and which are repeated."""

from dataclasses import replace

import pytest

from harness.simulator.cluster import Change
from harness.simulator.engine.distributions import fixed
from harness.simulator.kfp.records import Run
from harness.simulator.platform import Platform
from harness.simulator.profile import ArtifactStore, Step
from harness.simulator.profile.store_products import StoreProduct
from tests.support.platforms import GI, ONE_SECOND, UNCACHED, Journal, pool, profile, reasons, submit, upload


@pytest.mark.parametrize(
    ("product", "used", "state", "said"),
    [
        (StoreProduct.SEAWEEDFS, 0.0, "SUCCEEDED", ""),
        (StoreProduct.SEAWEEDFS, 0.985, "FAILED", "InternalError: We encountered an internal error"),
        (StoreProduct.MINIO, 0.985, "FAILED", "reached its minimum free disk threshold"),
    ],
)
def test_a_full_store_fails_the_step_within_its_main_container_and_only_the_log_says_why(
    product: StoreProduct, used: float, state: str, said: str
) -> None:
    store = ArtifactStore(product, capacity=GI, used=used * GI, timeout_s=20.0, request_s=0.0)
    step = replace(ONE_SECOND, output=fixed(10 * 2**20))
    journal = Journal()
    platform = Platform(profile(step=step, store=store), listener=journal)
    run = submit(platform, upload(platform))[0]
    platform.loop.run(100)
    assert run.state == state
    if state == "FAILED":
        pod = journal.saw(Change.OVER)[-1]
        assert (pod.phase, pod.exit_code, pod.reason, pod.message) == ("Failed", 1, "Error", "")
        assert pod.main_ended - pod.launch.uploading == pytest.approx(20.0)
        assert pod.launch.uploaded is None
        assert "failed to upload output artifact" in pod.launch.error
        assert said in pod.launch.error
        assert reasons(run) == ["main: Error (exit code 1)"]
        assert pod.wait_error == "", "a log of kilobytes still fits"
        assert len(journal.saw(Change.CREATED)) == 3  # nothing of what comes after


@pytest.mark.parametrize(
    ("product", "said"),
    [
        (StoreProduct.SEAWEEDFS, "We encountered an internal error, please try again."),
        (StoreProduct.MINIO, "Storage backend has reached its minimum free disk threshold."),
    ],
)
def test_a_store_without_room_for_a_log_fails_drivers_as_errors_which_argo_retries(
    product: StoreProduct, said: str
) -> None:
    store = ArtifactStore(product, capacity=GI, used=GI, timeout_s=2.0, request_s=0.0)
    journal = Journal()
    platform = Platform(profile(step=ONE_SECOND, store=store), listener=journal)
    run = submit(platform, upload(platform))[0]
    platform.loop.run(100)
    pods = journal.saw(Change.OVER)
    assert [(pod.role, pod.exit_code, pod.phase) for pod in pods] == [("dag-driver", 0, "Failed")] * 3
    for pod in pods:
        assert pod.wait_error.startswith(f"timed out waiting for the condition: failed to put file: {said}")
        assert pod.finished - pod.main_ended == pytest.approx(2.0)
    assert run.state == "FAILED"
    assert run.workflow is not None
    (_, step), *_ = run.workflow.made()
    assert step.state == "Error"
    assert step.message.startswith(
        "wait: Error (exit code 64): timed out waiting for the condition: failed to put file"
    )


RETRIED = b"        taskInfo:\n          name: prepare"


def retried(error_retries: int, *, failing: float = 1.0) -> tuple[Platform, Journal, Run]:
    """A run whose first step has ``set_retry(2)`` and fails with that probability."""
    package = UNCACHED.replace(RETRIED, _retry(2) + RETRIED)
    step = Step(
        match="prepare", duration=fixed(1.0), output=fixed(0.0), memory=fixed(1.0), cpu=fixed(0.01), failing=failing
    )
    journal, controller = Journal(), replace(profile().controller, error_retries=error_retries)
    platform = Platform(profile(steps=(step,), controller=controller), listener=journal)
    return platform, journal, submit(platform, upload(platform, package))[0]


def test_under_kfps_defaults_a_failed_step_is_not_repeated_not_even_with_retries() -> None:
    """KFP's ConfigMap sets the policy OnError for every node, and a failed container is no error."""
    platform, journal, run = retried(error_retries=2)
    platform.loop.run(100)
    assert run.state == "FAILED"
    assert reasons(run) == ["main: Error (exit code 1)"]
    (made,) = (pod for pod in journal.saw(Change.CREATED) if pod.role == "executor")
    assert "-retry-system-container-impl-" in made.name


def test_without_these_defaults_retries_of_the_pipeline_make_new_pods_with_a_growing_delay() -> None:
    platform, journal, run = retried(error_retries=0)
    platform.loop.run(100)
    made = [pod.created for pod in journal.saw(Change.CREATED) if pod.role == "executor"]
    assert made == pytest.approx([0.0, 1.0 + 5.0, 7.0 + 10.0], abs=1e-4)
    assert run.state == "FAILED"
    assert len({pod.name for pod in journal.saw(Change.CREATED)}) == 2 + 3


def test_a_lost_pod_of_a_step_with_retries_is_made_again_after_the_step_s_delay() -> None:
    platform, journal, run = retried(error_retries=2, failing=0.0)
    platform.loop.run(0.5)
    (running,) = [pod for pod in platform.cluster.pods.values() if pod.role == "executor"]
    platform.cluster.kubelet.delete(running)
    platform.loop.run(100)
    assert run.state == "SUCCEEDED"
    made = [pod for pod in journal.saw(Change.CREATED) if pod.role == "executor" and pod.task == "prepare"]
    assert made[1].created - made[0].created == pytest.approx(5.5, abs=1e-3)
    assert [pod.path[-len("executor(0)") :] for pod in made] == ["executor(0)", "executor(1)"]


def _retry(count: int) -> bytes:
    return (
        f"        retryPolicy:\n          maxRetryCount: {count}\n          backoffDuration: 5s\n"
        f"          backoffFactor: 2.0\n          backoffMaxDuration: 3600s\n"
    ).encode()


def test_a_lost_pod_is_made_again_and_the_run_succeeds() -> None:
    journal = Journal()
    platform = Platform(profile(pool(initial=2)), listener=journal)
    run = submit(platform, upload(platform))[0]
    platform.loop.run(0.5)
    (running,) = [pod for pod in platform.cluster.pods.values() if pod.role == "executor"]
    platform.cluster.kubelet.delete(running)
    platform.loop.run(100)
    assert run.state == "SUCCEEDED"
    assert run.finished == pytest.approx(3.5)
    assert len(journal.saw(Change.CREATED)) == 8


def test_memory_above_the_limit_is_killed() -> None:
    step = replace(ONE_SECOND, memory=fixed(2.0 * GI))
    journal = Journal()
    platform = Platform(profile(step=step), listener=journal)
    run = submit(platform, upload(platform))[0]
    platform.loop.run(100)
    pod = journal.saw(Change.OVER)[-1]
    assert (pod.exit_code, pod.reason) == (137, "OOMKilled")
    assert (run.state, reasons(run)) == ("FAILED", ["main: OOMKilled (exit code 137)"])


def test_a_cpu_limit_below_the_use_stretches_the_step() -> None:
    step = replace(ONE_SECOND, cpu=fixed(2.0))  # limits are 1, 2 and 0.5 cores
    platform = Platform(profile(step=step))
    run = submit(platform, upload(platform))[0]
    platform.loop.run(100)
    assert run.finished == pytest.approx(2.0 + 1.0 + 4.0)


def test_steps_that_want_more_cores_than_the_node_has_slow_each_other_down() -> None:
    step = replace(ONE_SECOND, cpu=fixed(1.0))
    platform = Platform(profile(pool(cpu=2), step=step))
    version = upload(platform)
    rows = submit(platform, version, 4)  # four prepare steps of one core on two cores
    platform.loop.run(1.9)
    assert all(step.finished is None for run in rows for plan, step in run.workflow.made() if plan.role == "executor")  # type: ignore[union-attr]
    platform.loop.run(2.1)
    assert all(
        step.finished is not None
        for run in rows
        for plan, step in run.workflow.made()  # type: ignore[union-attr]
        if plan.role == "executor" and plan.task == "prepare"
    )
