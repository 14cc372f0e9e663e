import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from harness.analysis.cost.resources import (
    Resources,
    Throttling,
    as_cores,
    as_memory,
    fit,
    fits,
    memory_bound,
    share_above,
    step_needs,
)
from harness.model.phases import POD_CFS_PERIODS, POD_CFS_THROTTLED, POD_CPU_CORES, POD_MEMORY_BYTES, RUNNING
from tests.support.stories import measured
from tests.support.timelines import GIB, Story

MI = 2**20


def test_requests_are_the_p95_with_headroom_and_memory_limits_equal_requests(tmp_path):
    needs = {need.task: need for need in step_needs(measured().timeline(tmp_path), {})}
    assert list(needs) == ["prepare", "train", "watch"]  # in time, without the platform's own drivers
    train = needs["train"]
    assert (train.pods, train.samples) == (20, 60)
    assert train.cpu_p95 == pytest.approx(1.9)
    assert train.advice.cpu_request == pytest.approx(2.1)  # 1.9 · 1.1 = 2.09
    assert train.advice.cpu_limit == pytest.approx(2.35)  # 1.95 · 1.2 = 2.34
    assert train.memory_p95 == 590 * MI
    assert train.advice.memory_request == train.advice.memory_limit == 768 * MI  # 590 · 1.2 = 708
    assert train.oom_share < 0.0001
    assert train.line == (
        'train.set_cpu_request("2100m").set_cpu_limit("2350m").set_memory_request("768Mi").set_memory_limit("768Mi")'
    )


def test_memory_counts_with_each_pods_peak_whenever_it_was(tmp_path):
    story = Story(intended=2)
    for seq, used in enumerate(((100, 900, 200), (300, 250, 280))):
        run = story.submit(seq)
        story.pod(run, "train", "n", (RUNNING, 0.0, 60.0))
        story.run(run, 0.0, 61.0)
        for at, mebibytes in zip((10, 25, 40), used, strict=True):
            story.sample(at, POD_MEMORY_BYTES, mebibytes * MI, pod=f"{run}-train")
            story.sample(at, POD_CPU_CORES, 0.5, pod=f"{run}-train")
    (train,) = step_needs(story.timeline(tmp_path), {})
    assert (train.memory_p95, train.memory_most) == (900 * MI, 900 * MI)
    assert train.advice.memory_request == 1088 * MI  # 900 · 1.2 = 1080


@pytest.mark.parametrize(("pods", "spread"), [(20, 0.5), (60, 0.4)])
def test_memory_advice_leaves_room_for_the_tail_of_a_lognormal_step(pods, spread):
    """Of later pods at most 1 % exceed it on average, and the share that is said is about the one that comes."""
    random = np.random.default_rng(5)
    came, said = [], []
    for _ in range(150):
        peaks = GIB * np.exp(spread * random.standard_normal(pods))
        bound = memory_bound(peaks)
        came.append(norm.sf(np.log(bound / GIB) / spread))
        said.append(share_above(peaks, bound))
    assert np.mean(came) < 0.01
    assert np.mean(np.array(came) > 0.01) == pytest.approx(0.05, abs=0.04)
    assert np.mean(said) == pytest.approx(np.mean(came), rel=0.5, abs=0.002)


def test_the_tail_of_few_pods_is_unknown():
    assert memory_bound(GIB * np.arange(1.0, 10.0)) == 0.0
    assert share_above(GIB * np.arange(1.0, 10.0), 9 * GIB) is None
    assert share_above(np.full(20, GIB), 2 * GIB) == 0.0


def test_a_step_held_at_its_cpu_limit_gets_more_and_a_warning(tmp_path):
    now = {"train": Resources(1.0, 1.2, 512 * MI, 512 * MI)}
    needs = {need.task: need for need in step_needs(measured(limit=1.2).timeline(tmp_path), now)}
    assert needs["train"].throttled == Throttling(pytest.approx(17 / 20), by_periods=False)
    assert needs["train"].advice.cpu_limit == pytest.approx(1.8)
    assert any("CPU limit" in note for note in needs["train"].notes)


@pytest.mark.parametrize(
    ("limit", "said"), [(2.4, "at its CPU limit of 2400m"), (None, "which the pipeline does not set")]
)
def test_throttled_periods_count_where_prometheus_has_them(tmp_path, limit, said):
    """Bursts of threads are throttled although the mean of 15 s stays far below the limit."""
    story = measured()
    for seq in range(20):
        for task, throttled in (("train", 4.0 if seq % 2 else 2.0), ("watch", 1.0)):
            story.sample(20, POD_CFS_PERIODS, 10.0, pod=f"run-{seq:04d}-{task}")
            story.sample(20, POD_CFS_THROTTLED, throttled, pod=f"run-{seq:04d}-{task}")
    now = {"train": Resources(1.0, limit, 512 * MI, 512 * MI), "watch": Resources(0.1, 0.2, 512 * MI, 512 * MI)}
    needs = {need.task: need for need in step_needs(story.timeline(tmp_path), now)}
    assert needs["train"].throttled == Throttling(pytest.approx(0.3), by_periods=True)
    (note,) = needs["train"].notes
    assert "throttled in 30% of its CFS periods" in note
    assert said in note
    assert needs["train"].advice.cpu_limit == pytest.approx(1.5 * (limit or 1.95), abs=0.03)
    assert needs["watch"].throttled == Throttling(pytest.approx(0.1), by_periods=True)
    assert needs["watch"].notes == ()


def test_a_step_killed_for_memory_gets_half_as_much_again(tmp_path):
    now = {"train": Resources(1.0, 4.0, 1024 * MI, 1024 * MI)}
    needs = {need.task: need for need in step_needs(measured(oom=True).timeline(tmp_path), now)}
    assert needs["train"].killed == 1
    assert needs["train"].advice.memory_limit == 1536 * MI


def test_steps_that_overlap_add_up_and_others_do_not(tmp_path):
    asks = {
        "prepare": Resources(cpu_request=1.5, memory_request=GIB),
        "train": Resources(cpu_request=1.0, memory_request=GIB),
        "watch": Resources(cpu_request=0.25, memory_request=GIB),
    }
    (found,) = fits(measured().timeline(tmp_path), asks)
    assert (found.run_cpu, found.run_memory) == (1.5, 2 * GIB)
    assert (found.jobs, found.binding) == (2, "cpu")
    assert found.stranded == pytest.approx(0.5)  # of the memory: 2 of 4 possible


def test_the_sentence_names_jobs_stranded_share_and_next_step():
    found = fit("pool", 15.2, 1e12, 4.0, 1e9)
    assert found.sentence.startswith("3 jobs per node, ")
    assert found.sentence.endswith("with 3.8 CPU: 4 jobs")
    assert fit("pool", 4.0, 16 * GIB, 0.1, 8 * GIB).binding == "memory"


@given(st.floats(0.5, 128), st.floats(0.5, 512), st.floats(0.05, 16), st.floats(0.05, 64))
def test_the_number_of_fitting_runs_is_the_maximum(cpu, memory, run_cpu, run_memory):
    found = fit("pool", cpu, memory * GIB, run_cpu, run_memory * GIB)
    assert found.jobs * run_cpu <= cpu * (1 + 1e-6)
    assert found.jobs * run_memory <= memory * (1 + 1e-6)
    assert (found.jobs + 1) * run_cpu > cpu or (found.jobs + 1) * run_memory > memory
    assert found.stranded >= -1e-6


def test_quantities_are_written_as_kubernetes_does():
    assert [as_cores(c) for c in (0.05, 0.5, 1.0, 1.5, 2.0)] == ["50m", "500m", "1", "1500m", "2"]
    assert [as_memory(m * MI) for m in (64, 512, 1024, 1536, 2048)] == ["64Mi", "512Mi", "1Gi", "1536Mi", "2Gi"]


@pytest.mark.parametrize(("pods", "factor"), [(10, 3.981), (20, 3.295), (50, 2.862)])
def test_the_tolerance_bound_has_the_factors_of_the_tables(pods, factor):
    """One-sided, for 99 % with 95 % confidence: Hahn and Meeker, Statistical Intervals, table A.12d."""
    logs = np.linspace(-1.0, 1.0, pods) ** 3
    bound = memory_bound(np.exp(logs))
    assert (np.log(bound) - logs.mean()) / logs.std(ddof=1) == pytest.approx(factor, abs=0.002)


def test_the_share_above_a_limit_is_that_of_the_next_pod():
    """The prediction of one more value by Student's t, here of ten with a limit 2.262 scaled deviations above."""
    logs = np.linspace(0.0, 0.9, 10)
    limit = np.exp(logs.mean() + 2.262157 * logs.std(ddof=1) * np.sqrt(1.1))
    assert share_above(np.exp(logs), limit) == pytest.approx(0.025, abs=1e-6)
    assert share_above(np.append(np.exp(logs), 0.0), limit) is None
    assert memory_bound(np.append(np.exp(logs), 0.0)) == 0.0
    assert memory_bound(np.ones(10)) == 1.0


@pytest.mark.parametrize(
    ("sizes", "jobs", "binding", "stranded", "next_step"),
    [
        ((16.0, 64 * GIB, 4.0, 8 * GIB), 4, "cpu", 0.5, 3.2),
        ((16.0, 64 * GIB, 4.0, 16 * GIB), 4, "cpu", 0.0, 3.2),  # both: CPU is named
        ((16.0, 64 * GIB, 1.0, 20 * GIB), 3, "memory", 1 - 3 / 16, 16 * GIB),
        ((16.0, 64 * GIB, 0.0, 30 * GIB), 2, "memory", 1.0, 21824 * MI),  # 21,845 MiB in steps of 64
        ((1.0, 64 * GIB, 0.03, 0.0), 33, "cpu", 1.0, pytest.approx(1 / 34)),  # less than a step
        ((0.3, GIB, 0.1, 1.0), 3, "cpu", pytest.approx(1.0), 0.05),  # 0.3 / 0.1 is a little less than 3
        ((2.0, GIB, 4.0, 1.0), 0, "cpu", 1.0, 2.0),
    ],
)
def test_how_many_runs_fit_and_what_one_more_would_take(sizes, jobs, binding, stranded, next_step):
    found = fit("pool", *sizes)
    assert (found.pool, found.cpu, found.memory, found.run_cpu, found.run_memory) == ("pool", *sizes)
    assert (found.jobs, found.binding, found.stranded, found.next_step) == (jobs, binding, stranded, next_step)


def test_runs_without_requests_fit_without_end():
    with pytest.raises(ValueError, match=r"^run_cpu or run_memory must be positive$"):
        fit("pool", 16.0, GIB, 0.0, 0.0)


def used(*pods, killed=0, end=60.0):
    """A run for each pod: its CPU measurements in cores, and its peak memory in MiB."""
    story = Story(intended=len(pods))
    for seq, (cores, mebibytes) in enumerate(pods):
        run = story.submit(seq)
        step = story.pod(run, "train", "n", (RUNNING, 0.0, end))
        story.run(run, 0.0, 61.0)
        for at, value in enumerate(cores, 10):
            story.sample(at, POD_CPU_CORES, value, pod=step)
        story.sample(10, POD_MEMORY_BYTES, mebibytes * MI, pod=step)
        if seq < killed:
            story.event(60.0, "Pod", step, "OOMKilled" if seq else "Error", "" if seq else "main: OOMKilled", run=run)
    return story


def needed(story, place, now=None):
    (need,) = step_needs(story.timeline(place), {"train": now} if now else {})
    return need


def test_few_pods_are_noted(tmp_path):
    one, nine = needed(used(((0.5,), 100)), tmp_path / "1"), needed(used(*[((0.5,), 100)] * 9), tmp_path / "9")
    assert (one.notes, nine.notes) == (("only 1 pod measured: run more",), ("only 9 pods measured: run more",))
    assert (one.pods, one.oom_share, one.throttled, one.now) == (1, None, None, Resources())
    ten = needed(used(*[((0.5, 0.7), 100)] * 10), tmp_path / "10")
    assert (ten.notes, ten.pods, ten.samples, ten.oom_share) == ((), 10, 20, pytest.approx(0.0))
    assert (ten.cpu_p95, ten.cpu_most) == (0.7, 0.7)
    assert ten.advice == Resources(pytest.approx(0.8), pytest.approx(0.85), 128 * MI, 128 * MI)


def test_pods_that_were_killed_are_noted_and_their_limit_grows_by_half(tmp_path):
    pods, limit = [((0.5,), 100)] * 10, Resources(memory_limit=1024 * MI)
    one = needed(used(*pods, killed=1), tmp_path / "1", limit)
    assert (one.killed, one.notes, one.oom_share) == (1, ("1 pod killed for memory: measure again",), None)
    assert (one.now, one.advice.memory_limit) == (limit, 1536 * MI)
    two = needed(used(*pods, killed=2), tmp_path / "2")
    assert (two.notes, two.advice.memory_request) == (("2 pods killed for memory: measure again",), 192 * MI)


def test_the_largest_pod_that_was_seen_fits_though_it_is_beyond_percentile_and_bound(tmp_path):
    """Of forty one pod took 200 MiB, the others 100: the 95th percentile is 100, the tolerance bound 140."""
    need = needed(used(((0.5,), 200), *[((0.5,), 100)] * 39), tmp_path)
    assert (need.memory_p95, need.memory_most) == (100 * MI, 200 * MI)
    assert need.advice.memory_request == 256 * MI


def test_without_use_there_is_no_advice_and_idle_steps_get_the_least(tmp_path):
    assert step_needs(used().timeline(tmp_path / "none"), {}) == ()
    idle = needed(used(*[((0.0,), 0.0)] * 10), tmp_path / "idle")
    assert idle.advice == Resources(0.05, 0.05, 64 * MI, 64 * MI)


@pytest.mark.parametrize(("cores", "throttled"), [(1.14, True), (1.13, False)])
def test_a_step_near_its_cpu_limit_counts_as_throttled(tmp_path, cores, throttled):
    need = needed(used(*[((cores,), 100)] * 10), tmp_path, Resources(cpu_limit=1.2))
    assert need.throttled.share == (1.0 if throttled else 0.0)
    assert need.notes == (("100% of the time at its CPU limit of 1200m: measure again",) if throttled else ())
    assert need.advice.cpu_limit == pytest.approx(1.8 if throttled else 1.4)


def test_what_runs_request_at_once_is_their_median_peak(tmp_path):
    """Of three runs two have one pod of 2 cores at a time, one has two at once; a pod that never ended runs on."""
    story = Story(intended=3)
    story.node("n", 0.0, 0.0, cpu=8.0, memory=32.0 * GIB)
    story.node("other", 0.0, 0.0, cpu=4.0, memory=32.0 * GIB)
    story.node("again", 0.0, 0.0, cpu=8.0, memory=32.0 * GIB)
    for seq, second in enumerate(((10.0, 20.0), (5.0, 20.0), (10.0, None))):
        run = story.submit(seq)
        story.pod(run, "a", "n", (RUNNING, 0.0, 10.0))
        story.pod(run, "b", "other", (RUNNING, *second))
        story.pod(run, "c", "again", (RUNNING, 20.0, 21.0))
        story.run(run, 0.0, 30.0)
    asks = {"a": Resources(2.0, None, GIB), "b": Resources(2.0, None, 2 * GIB)}
    found = fits(story.timeline(tmp_path), asks)
    assert {(each.cpu, each.run_cpu, each.run_memory, each.jobs) for each in found} == {
        (8.0, 2.0, 2.0 * GIB, 4), (4.0, 2.0, 2.0 * GIB, 2),
    }  # fmt: skip
    assert fits(story.timeline(tmp_path / "none"), {}) == ()
