"""Others beside the test are named when they cost it time, and only then."""

import pytest

from harness.analysis.capacity.others_load import others_load
from harness.detectors import diagnose
from harness.detectors.nodes import foreign_load
from harness.model.phases import REQUESTED_CPU_CORES, REQUESTED_MEMORY_BYTES, RUNNING
from tests.support.injected.loads import NODES, steady
from tests.support.injected.nodes import shared
from tests.support.timelines import GIB


def crowded(pods: int, start: float = 1.0, *, gap: float = 2.5):
    """A slow controller that creates so many pods of others too."""
    story = steady(60, gap=lambda _: gap)
    for k in range(pods):
        story.pod(f"theirs-{k}", "report", NODES[0], (RUNNING, start, start + 0.5))
    return story


def lonely():
    story = shared()
    story.records = [each for each in story.records if not str(getattr(each, "run", "")).startswith("theirs")]
    return story


def pending_only():
    """Others whose pods found no node hold none."""
    return shared(room=0.0)


@pytest.mark.parametrize(
    ("story", "named"),
    [
        (lambda: shared(cores=1.9), True),
        (lambda: shared(cores=0.2), False),  # they held little
        (lambda: shared(cores=1.9, runs=1), False),
        (pending_only, False),  # nobody waited for a node
        (lonely, False),
        (lambda: crowded(300), True),
        (lambda: crowded(20), False),
        (lambda: crowded(300, gap=0.1), False),  # the controller kept up
        (lambda: crowded(300, start=-90.0), False),  # before the test
    ],
)
def test_others_are_named_when_they_cost_the_test_time(tmp_path, story, named):
    assert bool(foreign_load.detect(story().timeline(tmp_path))) is named


@pytest.mark.parametrize(
    ("metric", "amount", "held"),
    [(REQUESTED_CPU_CORES, 1.5, 0.75), (REQUESTED_MEMORY_BYTES, 7 * GIB, 0.875), (REQUESTED_CPU_CORES, 9.0, 1.0)],
)
def test_what_others_hold_is_the_larger_share_of_cpu_and_memory(tmp_path, metric, amount, held):
    story = shared(cores=0.1)  # two pods on each node of 4 cores and 16 GiB
    story.records = [each for each in story.records if getattr(each, "metric", "") != REQUESTED_CPU_CORES]
    story.sample(2.0, metric, amount, task="report")
    found = others_load(story.timeline(tmp_path))
    assert (found.runs, found.pods) == (12, 12)
    assert found.held == pytest.approx(held, rel=0.02)


def test_a_pod_that_differs_from_its_tasks_first_one_counts_with_its_own_request(tmp_path):
    story = shared(cores=1.0)
    story.sample(2.0, REQUESTED_CPU_CORES, 3.0, pod="theirs-0-report")
    found = others_load(story.timeline(tmp_path))
    assert found.held == pytest.approx((11 * 1.0 + 3.0) / 24, rel=0.02)


def test_a_bottleneck_of_the_platform_comes_first(tmp_path):
    story = shared(cores=1.9, room=20.0)
    assert [each.name for each in diagnose(story.timeline(tmp_path)).findings][:2] == [
        "nodes-exhausted",
        "foreign-load",
    ]


def beside(cores=1.9, room=3.0):
    """Notebooks hold `cores` each of twelve places, and this test's pods wait for a node."""
    story = lonely() if room else steady(60)
    for k in range(12):
        story.pod("team-b/notebook", f"k{k}", NODES[k % len(NODES)], (RUNNING, 2.0, 150.0))
    story.records = [each for each in story.records if getattr(each, "metric", "") != REQUESTED_CPU_CORES]
    story.sample(2.0, REQUESTED_CPU_CORES, cores, task="k0")
    for k in range(1, 12):
        story.sample(2.0, REQUESTED_CPU_CORES, cores, pod=f"team-b/notebook-k{k}")
    return story


@pytest.mark.parametrize(("cores", "room", "named"), [(1.9, 3.0, True), (0.2, 3.0, False), (1.9, 0.0, False)])
def test_other_workloads_on_the_runs_nodes_are_named_when_pods_wait_for_what_they_hold(tmp_path, cores, room, named):
    timeline = beside(cores, room).timeline(tmp_path)
    found = others_load(timeline)
    assert (found.runs, found.workloads, found.pods, found.created) == (0, 1, 0, 0.0)
    assert found.held == pytest.approx(cores / 2 if room else 0.0, rel=0.02)
    findings = foreign_load.detect(timeline)
    assert bool(findings) is named
    for each in findings:
        assert each.evidence[0].statement == "1 other workload had pods on the nodes that this test's runs used"
        assert each.commands == ("kubectl get pods -A -l '!workflows.argoproj.io/workflow' -o wide",)
