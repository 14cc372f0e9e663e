import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from harness.analysis.cost.resources import (
    Resources,
    as_cores,
    as_memory,
    fit,
    fits,
    memory_bound,
    share_above,
    step_needs,
)
from harness.analysis.cost.throttling import Throttling
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
