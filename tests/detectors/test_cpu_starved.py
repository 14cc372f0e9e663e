"""Nodes that are out of CPU, and steps that are held at their CPU limits."""

import pytest

from harness.detectors.nodes import cpu_starved
from harness.model.phases import (
    CPU_LIMIT_CORES,
    NODE_CPU_CORES,
    POD_CFS_PERIODS,
    POD_CFS_THROTTLED,
    REQUESTED_CPU_CORES,
    RUNNING,
)
from tests.support.injection.case import simulated
from tests.support.injection.installations import draw
from tests.support.stories import measured
from tests.support.timelines import Story


@pytest.mark.parametrize(("requested", "starved"), [(2.0, True), (3.7, True), (3.9, False), (6.0, False), (None, True)])
def test_nodes_that_are_busy_with_what_pods_request_slow_none_of_them(requested, starved, tmp_path):
    """All four cores of the node are used from 0 to 100 s, in which a pod runs, and none after."""
    story = Story(intended=1)
    story.node("n", -60, -50)
    run = story.submit(0)
    story.pod(run, "train", "n", (RUNNING, 0, 100))
    story.run(run, 0, 200)
    for second in range(0, 200, 10):
        story.sample(second, NODE_CPU_CORES, 4.0 if second < 100 else 0.1, node="n")
    if requested is not None:
        story.sample(0, REQUESTED_CPU_CORES, requested, task="train")
    found = cpu_starved.detect(story.timeline(tmp_path))
    assert [each.title for each in found] == starved * [
        "Nodes were out of CPU for 50% of the time: steps run slower than they could"
    ]


@pytest.mark.parametrize(("number", "starved"), [(945, False), (1354, True)])
def test_full_nodes_slow_steps_only_where_these_use_more_than_they_request(number, starved):
    drawn = draw(660094, number)
    timeline = simulated(drawn.case, drawn.strength, drawn.seed, drawn.profile)
    assert bool(cpu_starved.detect(timeline)) is starved


def limited(limit: float, throttled: float | None = None, used: float | None = None):
    """`train` with a CPU limit, throttled in this share of its periods; each step's use as measured."""
    story = measured(limit=used)
    story.sample(0.0, NODE_CPU_CORES, 1.0, node="n")
    for task, amount in (("train", limit), ("prepare", 4.0), ("watch", 0.0)):
        story.sample(0.0, CPU_LIMIT_CORES, amount, task=task)
    for seq in range(20) if throttled is not None else ():
        story.sample(30.0, POD_CFS_PERIODS, 10.0, pod=f"run-{seq:04d}-train")
        story.sample(30.0, POD_CFS_THROTTLED, 10.0 * throttled, pod=f"run-{seq:04d}-train")
    return story


def test_a_throttled_step_is_named_with_its_limit_and_a_value_to_try(tmp_path):
    (found,) = cpu_starved.detect(limited(2.0, throttled=0.6).timeline(tmp_path))
    assert found.title == "train is held at its CPU limit of 2: it runs slower than it could"
    assert found.evidence[0].statement == "train has a CPU limit of 2 and was throttled in 60% of its CFS periods"
    assert "train: 2 → 3" in found.fix
    assert found.confidence == 0.85
    # Half of 60 % of train's 50 s of the 79 s that pods worked, while the runs ran for 59 of their 61 s.
    assert found.severity == pytest.approx(0.5 * 0.5 * 0.6 * 50 / 79, rel=0.05)


def test_use_at_the_limit_counts_less_as_a_single_thread_has_no_use_for_more(tmp_path):
    (found,) = cpu_starved.detect(limited(1.2, used=1.2).timeline(tmp_path))
    assert found.evidence[0].statement == "train has a CPU limit of 1200m and was at it in 85% of the samples"
    assert "train: 1200m → 1800m" in found.fix
    assert found.confidence == 0.5


@pytest.mark.parametrize(
    "story",
    [
        limited(2.0, throttled=0.2),  # bursts of threads are throttled a little
        limited(1.2, used=1.2, throttled=0.0),  # a thread that uses its core: the kernel says that it lacks none
        limited(2.4),  # below its limit
        limited(0.0),  # no limit
    ],
)
def test_a_step_below_its_limit_is_not_starved(story, tmp_path):
    assert cpu_starved.detect(story.timeline(tmp_path)) == []


@pytest.mark.parametrize(("throttled", "found"), [(0.3, 0), (0.4, 1)])
def test_a_short_step_at_its_limit_is_no_bottleneck(throttled, found, tmp_path):
    """It runs 9 s of the 79 s that pods work; half of its throttled time is lost."""
    story = limited(0.0)
    for seq in range(20):
        story.sample(3.0, POD_CFS_PERIODS, 10.0, pod=f"run-{seq:04d}-prepare")
        story.sample(3.0, POD_CFS_THROTTLED, 10.0 * throttled, pod=f"run-{seq:04d}-prepare")
    assert len(cpu_starved.detect(story.timeline(tmp_path))) == found


def test_the_step_that_costs_most_comes_first(tmp_path):
    story = limited(2.0, throttled=0.5)
    for seq in range(20):
        story.sample(3.0, POD_CFS_PERIODS, 10.0, pod=f"run-{seq:04d}-prepare")
        story.sample(3.0, POD_CFS_THROTTLED, 10.0, pod=f"run-{seq:04d}-prepare")
    (found,) = cpu_starved.detect(story.timeline(tmp_path))
    assert [each.statement.split()[0] for each in found.evidence] == ["train", "prepare"]
