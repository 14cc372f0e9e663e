import numpy as np
import pytest

from harness.analysis.capacity.progress import progress, scaling, work
from harness.analysis.capacity.scaling import AMDAHL, LINEAR
from harness.cli import main
from harness.model.phases import PULLING, REQUESTED_CPU_CORES, REQUESTED_MEMORY_BYTES, RUNNING, UNSCHEDULABLE
from harness.planning import simulated_burst
from harness.simulator.profile.file import load_profile
from harness.store import RunFolder
from harness.store.tables import load, seal
from tests.support.stories import stairs
from tests.support.timelines import GIB, STORE_MESSAGE, Story, Timeline


def test_perfect_scaling_is_linear_and_contention_is_amdahls(tmp_path):
    linear = scaling(stairs(lambda n: 240.0 * n).timeline(tmp_path / "a"))
    assert linear is not None
    assert linear.curve.law == LINEAR
    assert linear.curve.gamma == pytest.approx(240, rel=0.02)
    bent = scaling(stairs(lambda n: 240.0 * n / (1 + 0.2 * (n - 1))).timeline(tmp_path / "b"))
    assert bent is not None
    assert bent.curve.law == AMDAHL
    assert bent.curve.sigma == pytest.approx(0.2, rel=0.15)


@pytest.mark.parametrize("steps", [(3,), (2, 3), (10, 11, 12)])
def test_few_numbers_of_nodes_do_not_extrapolate(tmp_path, steps):
    assert scaling(stairs(lambda n: 120.0 * n, steps=steps).timeline(tmp_path)) is None


def waves(*, requests=True, failed=False):
    """Two runs on one node of 4 cores: first both small steps (1 core, 100 s), then one large one (4 cores) each.

    A run is 100 s x 1/4 + 100 s x 1 of the node: the small step is a fifth of it. Others wait for room all the time.
    """
    story = Story(intended=3)
    story.node("n0", -10, -5, cpu=4.0, memory=16.0 * GIB)
    for seq in range(2):
        run, large = story.submit(seq), 100.0 + 100.0 * seq
        story.pod(run, "small", "n0", (PULLING, 0.0, 20.0), (RUNNING, 20.0, 100.0))
        story.pod(run, "large", "n0", (UNSCHEDULABLE, 100.0, large), (RUNNING, large, large + 100.0))
        story.run(run, 0.0, large + 100.0)
    run = story.submit(2)
    story.pod(run, "small", "n0", (UNSCHEDULABLE, 0.0, 300.0), (RUNNING, 300.0, 301.0))
    story.run(run, 0.0, 301.0, *(("FAILED", STORE_MESSAGE) if failed else ()))
    if requests:
        for task, cpu, memory in (("small", 1.0, GIB), ("large", 1.0, 16.0 * GIB)):
            story.sample(0.0, REQUESTED_CPU_CORES, cpu, task=task)
            story.sample(0.0, REQUESTED_MEMORY_BYTES, memory, task=task)
    return story


EDGES = np.array([0.0, 50.0, 100.0, 150.0, 200.0, 300.0])


def test_a_pod_counts_by_its_typical_duration_and_its_requests(tmp_path):
    done = work(waves(failed=True).timeline(tmp_path)).done(EDGES)
    assert done == pytest.approx([0.2, 0.2, 0.4, 0.4, 0.8])
    assert done.sum() == pytest.approx(2.0), "two runs' worth"


def test_without_requests_pods_count_by_duration_alone(tmp_path):
    done = work(waves(requests=False, failed=True).timeline(tmp_path)).done(EDGES)
    assert done == pytest.approx([0.5, 0.5, 0.25, 0.25, 0.5])


def test_a_pod_that_fails_at_once_has_not_worked_faster(tmp_path):
    """A pod that fails within a second does a hundredth of what it would have done in its usual time."""
    story = waves(failed=True)
    run = story.submit(3)
    story.pod(run, "large", "n0", (UNSCHEDULABLE, 0.0, 100.0), (RUNNING, 100.0, 101.0))
    story.run(run, 0.0, 101.0, "FAILED", STORE_MESSAGE)
    assert work(story.timeline(tmp_path)).done(EDGES) == pytest.approx([0.2, 0.2, 0.408, 0.4, 0.8])


@pytest.mark.parametrize("pods", [False, True])
def test_without_pods_or_success_there_is_no_work(tmp_path, pods):
    story = Story(intended=1)
    run = story.submit(0)
    if pods:
        story.pod(run, "small", "n0", (RUNNING, 0.0, 5.0))
    story.run(run, 0.0, 5.0, "FAILED")
    timeline = story.timeline(tmp_path)
    assert work(timeline) is None
    assert progress(timeline) is None


def test_pods_that_outlast_the_scale_up_show_nothing_about_fewer_nodes(tmp_path):
    """All pods hold their nodes from the first node to the last: how quick each number of nodes was can't be told."""
    story = Story(intended=8)
    for node in range(8):
        story.node(f"n{node}", -10.0, 10.0 * node)
    for seq in range(8):
        run = story.submit(seq)
        story.pod(run, "a", f"n{seq}", (UNSCHEDULABLE, 0.0, 10.0 * seq), (RUNNING, 10.0 * seq, 1000.0 + 10.0 * seq))
        story.run(run, 0.0, 1000.0 + 10.0 * seq)
    waiting = story.submit(8)
    story.pod(waiting, "a", "n0", (UNSCHEDULABLE, 0.0, 1100.0), (RUNNING, 1100.0, 2100.0))
    story.run(waiting, 0.0, 2100.0)
    assert scaling(story.timeline(tmp_path)) is None


def simulated(place, *more):
    """A test in which the autoscaler brings up to 20 nodes."""
    given = ("--profile=aks-20-nodes", f"--runs-dir={place}", "--run-name=grows", "--no-report", *more)
    assert main(["simulate", "run", "--quiet", *given]) == 0
    folder = RunFolder.open(place / "grows")
    seal(folder)
    return scaling(Timeline.from_frames(folder.read_plan(), load(folder)))


def test_nodes_added_during_a_test_show_the_throughput_of_others(tmp_path):
    """The law of an autoscaled test held against tests on fixed numbers of nodes."""
    found = simulated(tmp_path, "--schedule=burst", "--runs=400")
    assert found is not None
    assert found.fitted_on == (pytest.approx(3), pytest.approx(20))
    assert found.curve.efficiency(20) > 0.8
    pipeline = simulated_burst.package(None)
    for nodes in (5, 10):
        fixed = simulated_burst.with_nodes(load_profile("aks-20-nodes"), nodes, pipeline)
        test = simulated_burst.burst(fixed, pipeline, 1500, 7)
        assert found.curve.at(nodes) == pytest.approx(3600 * test.succeeded / test.duration_s, rel=0.12)


def test_a_shared_store_limits_the_throughput_of_nodes(tmp_path):
    found = simulated(tmp_path, "--fault=store-slow:0.3", "--schedule=ramp", "--rate=5/m..60/m", "--for=30m")
    assert found is not None
    assert found.curve.law != LINEAR
    assert found.enough.value < 12 < found.fitted_on[1]
