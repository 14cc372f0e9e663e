"""Spot arithmetic: the closed forms against special cases worked out by hand, drawn attempts, and the simulator."""

from dataclasses import replace
from math import e, exp, inf
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.analysis.capacity.recorded import eviction_factor
from harness.analysis.spot.advice import share_of
from harness.simulator.cluster import Change, Pod
from harness.simulator.engine.distributions import fixed
from harness.simulator.platform import Platform
from harness.simulator.profile import Step
from tests.support.platforms import UNCACHED, Journal, pool, profile, submit, upload
from tests.support.spot_arithmetic import Expected, expected


def test_a_step_as_long_as_the_mean_time_between_losses_takes_e_attempts() -> None:
    """r s = 1: p = 1/e, so e attempts, and (e - 1) times the mean in work."""
    found = expected(3600.0, 1 / 3600)
    assert (found.success, found.attempts) == (1.0, pytest.approx(e))
    assert (found.work_s, found.lost_s) == (pytest.approx(3600 * (e - 1)), pytest.approx(3600 * (e - 2)))


def test_without_retries_a_step_has_one_attempt_cut_short() -> None:
    """E[min(T, s)] = (1 - exp(-r s)) / r."""
    found = expected(3600.0, 1 / 3600, retries=0)
    assert (found.success, found.attempts) == (pytest.approx(1 / e), 1.0)
    assert found.work_s == pytest.approx(3600 * (1 - 1 / e))
    assert found.lost_s == pytest.approx(3600 * (1 - 2 / e))


def test_retries_are_a_truncated_geometric_distribution() -> None:
    """With n attempts: success 1 - (1 - p)^n, attempts (1 - (1 - p)^n) / p."""
    p = exp(-0.5)
    found = expected(1800.0, 1 / 3600, retries=3)
    assert found.success == pytest.approx(1 - (1 - p) ** 4)
    assert found.attempts == pytest.approx((1 - (1 - p) ** 4) / p)


def test_checkpoints_divide_a_step_into_shorter_ones() -> None:
    found, segment = expected(3600.0, 1 / 1000, segments=6), expected(600.0, 1 / 1000)
    assert found.work_s == pytest.approx(6 * segment.work_s)
    assert found.attempts - 1 == pytest.approx(6 * (segment.attempts - 1))


@pytest.mark.parametrize(("length_s", "rate"), [(100.0, 0.0), (0.0, 0.1)])
def test_what_is_not_lost_is_done_once(length_s: float, rate: float) -> None:
    assert expected(length_s, rate, retries=2) == Expected(1.0, 1.0, length_s, 0.0)


def test_the_capacity_model_lengthens_work_by_the_same_law() -> None:
    assert eviction_factor(1800.0, 2.0, 0.0) == pytest.approx(expected(1800.0, 2 / 3600).work_s / 1800)


@settings(max_examples=50, deadline=None)
@given(
    length_s=st.floats(1.0, 1e5), rate=st.floats(1e-7, 1e-4), retries=st.integers(0, 20), segments=st.integers(1, 10)
)
def test_more_retries_or_checkpoints_never_make_success_less_likely(
    length_s: float, rate: float, retries: int, segments: int
) -> None:
    few, more = (expected(length_s, rate, count, segments) for count in (retries, retries + 1))
    finer, endless = expected(length_s, rate, retries, 2 * segments), expected(length_s, rate, inf, segments)
    assert few.success <= more.success + 1e-12
    assert few.work_s <= more.work_s * (1 + 1e-9) <= endless.work_s * (1 + 1e-6)
    assert few.lost_s + 1e-9 * few.work_s >= 0
    assert retries > 0 or finer.success == pytest.approx(few.success)


def test_the_share_of_one_step_leaves_the_runs_share() -> None:
    share = share_of(0.01, 3)
    assert (1 - share) ** 3 == pytest.approx(0.99)
    assert (share_of(1.0, 3), share_of(0.0, 3)) == (1.0, 0.0)


def drawn(length_s: float, rate: float, retries: int, segments: int, random: Random) -> tuple[bool, int, float]:
    """One step, attempt by attempt: whether it succeeded, its attempts, and its work."""
    work_s, done_s, part_s = 0.0, 0.0, length_s / segments
    for attempt in range(1, retries + 2):
        lost_after_s = random.expovariate(rate)
        if done_s + lost_after_s >= length_s:
            return True, attempt, work_s + length_s - done_s
        work_s += lost_after_s
        done_s += lost_after_s // part_s * part_s
    return False, retries + 1, work_s


@pytest.mark.parametrize(("retries", "segments"), [(0, 1), (2, 1), (2, 4), (5, 3)])
def test_drawn_attempts_agree(retries: int, segments: int) -> None:
    """20,000 steps of 1,000 s with a loss each 800 s: means within four standard errors."""
    random, count = Random(7), 20_000
    found = [drawn(1000.0, 1 / 800, retries, segments, random) for _ in range(count)]
    wanted = expected(1000.0, 1 / 800, retries, segments)
    for values, mean in (
        ([float(ok) for ok, _, _ in found], wanted.success),
        ([float(attempts) for _, attempts, _ in found], wanted.attempts),
        ([work_s for _, _, work_s in found], wanted.work_s),
    ):
        average = sum(values) / count
        error = (sum((value - average) ** 2 for value in values) / count / count) ** 0.5
        assert average == pytest.approx(mean, abs=4 * error + 1e-9)


TASK = b"        taskInfo:\n          name: prepare"


class Evictor(Journal):
    """Deletes the pods of a task at a constant rate while they run."""

    platform: Platform

    def __init__(self, task: str, rate: float) -> None:
        super().__init__()
        self.task, self.rate, self.random = task, rate, Random(5)
        self.attempts: list[Pod] = []

    def pod_changed(self, pod: Pod, change: Change, detail: str = "") -> None:
        if change is Change.STARTED and pod.role == "executor" and pod.task == self.task:
            self.attempts.append(pod)
            platform = self.platform
            platform.loop.after(self.random.expovariate(self.rate), self._delete, pod)

    def _delete(self, pod: Pod) -> None:
        if not pod.over:
            self.platform.cluster.kubelet.delete(pod)


@pytest.mark.parametrize(("retries", "checkpoint_s"), [(1, 0.0), (3, 150.0)])
def test_the_simulator_agrees(retries: int, checkpoint_s: float) -> None:
    """800 runs whose first step takes 600 s, with a loss each 600 s: all within four standard errors."""
    length_s, rate, runs = 600.0, 1 / 600, 800
    policy = (
        f"        retryPolicy:\n          maxRetryCount: {retries}\n          backoffDuration: 0s\n"
        "          backoffFactor: 1.0\n          backoffMaxDuration: 1000000s\n"
    )
    package = UNCACHED.replace(TASK, policy.encode() + TASK)
    usual = Step(duration=fixed(0.0), output=fixed(0.0), cpu=fixed(0.001), memory=fixed(1.0))
    lasting = replace(usual, match="prepare", duration=fixed(length_s), checkpoint_s=checkpoint_s)
    evictor = Evictor("prepare", rate)
    machine = replace(pool(cpu=10_000.0, pods=10**6), memory=1e15)
    platform = evictor.platform = Platform(profile(machine, steps=(lasting, usual)), 3, evictor)
    rows = submit(platform, upload(platform, package), runs)
    platform.loop.run()
    wanted = expected(length_s, rate, retries, int(length_s // checkpoint_s) if checkpoint_s else 1)
    worked_s = sum((pod.finished or 0.0) - (pod.started or 0.0) for pod in evictor.attempts)
    error = runs**-0.5
    succeeded = sum(run.state == "SUCCEEDED" for run in rows) / runs
    assert succeeded == pytest.approx(wanted.success, abs=4 * (wanted.success * (1 - wanted.success)) ** 0.5 * error)
    assert len(evictor.attempts) / runs == pytest.approx(wanted.attempts, abs=4 * retries / 2 * error)
    assert worked_s / runs == pytest.approx(wanted.work_s, abs=4 * length_s * error)
