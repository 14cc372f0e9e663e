"""Steps on a tainted pool and drivers on the default one: nodes, hours, work and capacity are those of the steps' pool."""

import numpy as np
import pytest

from harness.analysis.capacity.bounds import bounds
from harness.analysis.capacity.progress import share_with_pending, work
from harness.analysis.capacity.recorded import recorded
from harness.analysis.cost.cost import cost, goodput
from harness.analysis.cost.requested import requested
from harness.analysis.throughput import throughput
from harness.model.phases import REQUESTED_CPU_CORES, RUNNING, UNSCHEDULABLE
from tests.support.timelines import Story

RUNS, DRIVER_S, STEP_S = 12, 20.0, 80.0
END_S = RUNS / 2 * (DRIVER_S + STEP_S)
WHOLE = np.array([0.0]), np.array([END_S])


def told(*, driver_home: str = "d0", steps: bool = True) -> Story:
    """Two runs at a time: their drivers wait for the default pool's node, their steps run on the other pool's two."""
    story = Story(intended=RUNS)
    story.node("d0", -900, -890, pool="default", price=1.0)
    for k in range(2):
        story.node(f"s{k}", -900, -890, pool="steps", price=0.2)
    for task, cores in (("train-driver", 0.1), ("train", 4.0)):
        story.sample(0.0, REQUESTED_CPU_CORES, cores, task=task)
    for seq in range(RUNS):
        run, start = story.submit(seq), (seq // 2) * (DRIVER_S + STEP_S)
        driven = start + DRIVER_S
        story.pod(run, "train-driver", driver_home, (UNSCHEDULABLE, 0.0, start), (RUNNING, start, driven))
        if steps:
            story.pod(run, "train", f"s{seq % 2}", (RUNNING, driven, driven + STEP_S))
        story.run(run, 0.0, driven + STEP_S)
    return story


@pytest.fixture
def timeline(tmp_path):
    return told().timeline(tmp_path)


def test_throughput_hours_and_cost_count_the_nodes_of_the_steps(timeline):
    paid, hours = cost(timeline), END_S / 3600
    assert paid is not None
    assert (paid.node_hours, paid.cost) == pytest.approx((2 * hours, 0.4 * hours))
    assert paid.busy_hours == pytest.approx(RUNS * STEP_S / 3600)
    assert set(throughput(timeline).nodes[:-1]) == {2.0}
    (only,) = goodput(timeline)
    assert (only.nodes, only.runs, only.worked_s) == (2, pytest.approx(RUNS), pytest.approx(RUNS * STEP_S))


def test_requests_and_work_on_the_pool_are_those_of_steps(timeline):
    assert requested(timeline)[0].held_hours == pytest.approx(RUNS * 4.0 * STEP_S / 3600)
    done = work(timeline)
    assert done is not None
    assert (done.start.size, done.of_machines) == (RUNS, 1.0)
    assert float((done.rate * (done.end - done.start)).sum()) == pytest.approx(RUNS), (
        "whole runs, without their drivers"
    )


def test_a_capacity_answer_is_for_the_pool_of_the_steps(timeline):
    (found,) = recorded(timeline).observations
    assert (found.runs, found.nodes, found.duration_s) == (RUNS, 2.0, pytest.approx(END_S))
    assert recorded(timeline).price == pytest.approx(0.2)


def test_a_driver_that_waits_for_the_default_pool_does_not_wait_for_the_steps_nodes(timeline):
    assert share_with_pending(timeline, *WHOLE) == pytest.approx(0.0)
    assert [each.part for each in bounds(timeline) if each.part == "nodes"] == []


def test_drivers_without_a_taint_in_their_way_wait_for_the_same_nodes(tmp_path):
    timeline = told(driver_home="s0").timeline(tmp_path)
    assert share_with_pending(timeline, *WHOLE) > 0.8
    assert requested(timeline)[0].held_hours == pytest.approx(RUNS * (4.0 * STEP_S + 0.1 * DRIVER_S) / 3600)


def test_where_only_drivers_were_seen_their_pool_is_all_that_is_known(tmp_path):
    assert list(told(steps=False).timeline(tmp_path).run_nodes["pool"]) == ["default"]
