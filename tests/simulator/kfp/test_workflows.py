"""Runs on the simulated platform: what makes them wait, and how they end."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.simulator.cluster import Change
from harness.simulator.engine.distributions import Amount, Uniform, fixed
from harness.simulator.kfp.errors import Code, RpcError
from harness.simulator.kfp.records import Run
from harness.simulator.platform import Platform
from harness.simulator.profile import Agent, Api, ArtifactStore, Step
from harness.simulator.profile.store_products import StoreProduct
from tests.support.platforms import GI, TRAINING, UNCACHED, Journal, pool, profile, submit, upload

ONE_SECOND = Step(duration=fixed(1.0), output=fixed(0.0), cpu=fixed(0.01), memory=fixed(1.0))


def reasons(run: Run) -> list[str]:
    """The messages of its workflow's nodes."""
    assert run.workflow is not None
    return [step.message for _, step in run.workflow.made() if step.message]


def test_a_run_takes_as_long_as_its_steps_when_nothing_else_takes_time() -> None:
    platform = Platform(profile())
    run = submit(platform, upload(platform))[0]
    platform.loop.run(100)
    assert (run.state, run.finished) == ("SUCCEEDED", pytest.approx(3.0))
    assert [state for _, state in run.history] == ["PENDING", "", "RUNNING", "SUCCEEDED"]


def test_every_run_makes_two_n_plus_one_pods() -> None:
    journal = Journal()
    platform = Platform(profile(), listener=journal)
    submit(platform, upload(platform), 20)
    platform.loop.run(100)
    assert len(journal.saw(Change.CREATED)) == len(journal.saw(Change.OVER)) == 20 * 7


@settings(deadline=None, max_examples=25)
@given(runs=st.integers(1, 30), seed=st.integers(0, 1000), failing=st.floats(0, 0.5), cores=st.integers(2, 8))
def test_every_run_ends_and_every_pod_is_accounted_for(runs: int, seed: int, failing: float, cores: int) -> None:
    journal = Journal()
    step = replace(ONE_SECOND, failing=failing, duration=Amount(Uniform(0.1, 3.0)))
    platform = Platform(profile(pool(cpu=cores), step=step), seed, journal)
    rows = submit(platform, upload(platform), runs)
    platform.loop.run()
    assert all(run.state in {"SUCCEEDED", "FAILED"} for run in rows)
    assert len(journal.saw(Change.CREATED)) == len(journal.saw(Change.GONE))
    assert not platform.cluster.pods
    for node in platform.cluster.nodes.values():
        assert (node.cpu_free, node.pods_free) == (node.cpu, node.pool.pods)


def test_the_same_seed_gives_the_same_run_times_and_another_seed_others() -> None:
    def ends(seed: int) -> list[float | None]:
        step = replace(ONE_SECOND, duration=Amount(Uniform(0.1, 3.0)))
        platform = Platform(profile(pool(cpu=3), step=step), seed)
        rows = submit(platform, upload(platform), 10)
        platform.loop.run()
        return [run.finished for run in rows]

    assert ends(1) == ends(1)
    assert ends(1) != ends(2)


def test_submissions_wait_for_the_api_servers_tokens() -> None:
    platform = Platform(profile(api=Api(qps=5.0, burst=10, latency=fixed(0.0), tokens_per_report=0)))
    answered: list[float] = []
    version = upload(platform)
    for number in range(20):
        run = platform.server.prepare_run(f"run-{number}", "", version, {}, by_reference=True)
        platform.server.start_run(run, lambda _: answered.append(platform.loop.now))
    platform.loop.run(1)
    assert answered == pytest.approx([0.0] * 10 + [0.2, 0.4, 0.6, 0.8, 1.0])


def test_ends_that_are_reported_take_tokens_from_submissions() -> None:
    """Derived for KFP 2.17: a run costs a token to create and two to report, so 5/3 runs a second at 5 QPS."""
    api = Api(qps=5.0, burst=1, latency=fixed(0.0), tokens_per_report=2)
    platform = Platform(profile(pool(cpu=1000), api=api))
    rows = submit(platform, upload(platform), 300)
    platform.loop.run()
    ends = sorted(run.history[-1][0] for run in rows)
    assert len(ends) / ends[-1] == pytest.approx(5 / 3, rel=0.02)


@pytest.mark.parametrize(
    ("step_s", "slots_s"),
    [
        (1.0, 10.0),  # ended before the next look, ten seconds after the pod's creation
        (13.0, 20.0),  # running at the next look, which is a change, so that another follows
        (35.0, 45.0),  # no look is due when it ends: ten seconds from then
    ],
)
def test_each_workflow_is_looked_at_on_a_grid_of_its_own(step_s: float, slots_s: float) -> None:
    quick = profile().controller
    step = replace(ONE_SECOND, duration=fixed(step_s))
    platform = Platform(profile(step=step, controller=replace(quick, requeue_s=10.0, settle_s=1.0)))
    run = submit(platform, upload(platform))[0]
    platform.loop.run(1000)
    assert run.finished == pytest.approx(4 * 10.0 + 3 * slots_s)  # four drivers and three steps, one after the other


def test_a_parallelism_cap_lets_so_many_workflows_run_at_once() -> None:
    quick = profile().controller
    platform = Platform(profile(controller=replace(quick, parallelism=2)))
    rows = submit(platform, upload(platform), 6)
    platform.loop.run(100)
    assert sorted(run.finished or 0.0 for run in rows) == pytest.approx([3, 3, 6, 6, 9, 9])


@pytest.mark.parametrize("end", ["delete_run", "terminate"])
def test_postponed_workflows_start_when_others_are_deleted_or_terminated(end: str) -> None:
    quick = profile().controller
    platform = Platform(profile(controller=replace(quick, parallelism=1)))
    running, postponed, last = submit(platform, upload(platform), 3)
    platform.loop.run(0.5)
    getattr(platform.server, end)(postponed.id)
    platform.loop.run(1.0)
    getattr(platform.server, end)(running.id)
    platform.loop.run(100)
    assert (last.state, last.finished) == ("SUCCEEDED", pytest.approx(4.0))
    assert platform.controller.running == 0


def test_pods_are_made_at_the_rate_of_the_controllers_client() -> None:
    quick = profile().controller
    journal = Journal()
    platform = Platform(profile(controller=replace(quick, qps=10.0, burst=1)), listener=journal)
    submit(platform, upload(platform), 50)
    platform.loop.run()
    made = sorted(pod.created for pod in journal.saw(Change.CREATED))
    assert len(made) / (made[-1] - made[0]) <= 10.0


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


def test_with_the_cache_on_the_second_run_skips_computed_steps() -> None:
    journal = Journal()
    platform = Platform(profile(), listener=journal)
    version = upload(platform, TRAINING)
    first = submit(platform, version)[0]
    platform.loop.run(10)
    second = submit(platform, version)[0]
    other = submit(platform, version, data_multiplier=7)[0]
    platform.loop.run(20)
    assert [run.finished for run in (first, second, other)] == pytest.approx([3.0, 10.0, 13.0])
    executors = [pod for pod in journal.saw(Change.CREATED) if pod.role == "executor"]
    assert len(executors) == 6


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


def test_the_api_learns_of_changes_after_the_agents_lag() -> None:
    platform = Platform(profile(agent=Agent(workers=1, report_s=0.0, lag_s=30.0)))
    run = submit(platform, upload(platform))[0]
    platform.loop.run(29.9)
    assert run.state == "PENDING"
    platform.loop.run(30.1)
    assert run.state == "SUCCEEDED"
    assert run.finished == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("name", "parameters", "code"),
    [
        ("", {}, Code.INTERNAL),
        ("run", {"nonsense": 1}, Code.INVALID_ARGUMENT),
    ],
)
def test_a_run_that_can_not_be_is_refused(name: str, parameters: dict[str, object], code: Code) -> None:
    platform = Platform(profile())
    with pytest.raises(RpcError) as refused:
        platform.server.prepare_run(name, "", upload(platform), parameters, by_reference=True)
    assert refused.value.code is code


def test_no_two_living_workflows_have_the_same_name() -> None:
    platform = Platform(profile())
    version = upload(platform)

    class Repeating:
        """Draws each suffix three times."""

        def __init__(self) -> None:
            self.drawn = 0

        def choices(self, letters: str, k: int) -> list[str]:
            self.drawn += 1
            return [letters[self.drawn // 3]] * k

        def random(self) -> float:
            return 1.0

        def getrandbits(self, bits: int) -> int:
            del bits
            self.drawn += 1
            return self.drawn

    platform.server._random = Repeating()  # type: ignore[assignment]
    submit(platform, version, 5)
    platform.loop.run(0.0)
    assert len(platform.controller.workflows) == 5
