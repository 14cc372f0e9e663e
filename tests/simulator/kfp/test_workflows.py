"""Runs on the simulated platform: what makes them wait, and how they end."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.simulator.cluster import Change
from harness.simulator.engine.distributions import Amount, Uniform, fixed
from harness.simulator.kfp.errors import Code, RpcError
from harness.simulator.platform import Platform
from harness.simulator.profile import Agent, Api
from tests.support.platforms import ONE_SECOND, TRAINING, Journal, pool, profile, submit, upload


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


def test_pods_are_made_at_the_rate_of_the_controllers_client() -> None:
    quick = profile().controller
    journal = Journal()
    platform = Platform(profile(controller=replace(quick, qps=10.0, burst=1)), listener=journal)
    submit(platform, upload(platform), 50)
    platform.loop.run()
    made = sorted(pod.created for pod in journal.saw(Change.CREATED))
    assert len(made) / (made[-1] - made[0]) <= 10.0


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
