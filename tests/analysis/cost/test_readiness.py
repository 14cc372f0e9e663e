"""Image pulls and GPU drivers, and the accounts of a Dask cluster whose pods serve the one that computes."""

import pytest

from harness.analysis.cost.cost import cost, gpu_drivers, image_pulls, pending
from harness.analysis.cost.requested import requested
from harness.analysis.waits.critical_path import critical_path
from harness.analysis.waits.waits import waits
from harness.model.phases import (
    COMPUTING,
    CONTROLLER,
    PULLING,
    QUEUED,
    REQUESTED_CPU_CORES,
    REQUESTED_GPUS,
    RUNNING,
    SCHEDULING,
    SERVING,
    STARTING,
    UNSCHEDULABLE,
)
from tests.support.timelines import Story


def dask(*, drivers: float | None = None) -> Story:
    """A session of 100 s: a scheduler, workers that are ready at 21 s and 61 s, and 30 s of work."""
    story = Story(intended=1, target="dask_tenants")
    gpus_at = None if drivers is None else round((1_790_000_000 + 40 + drivers) * 1e9)
    story.node("node-0", -100, -90, pool="gpu", gpu=2.0)
    story.node("node-1", 30, 40, pool="gpu", gpu=2.0, gpus_at=gpus_at)
    run = story.submit(0, due=0.0, lag=0.0, service=100.0)
    parts = (("wait", QUEUED, 0, 65), ("compute", COMPUTING, 65, 98), ("close", COMPUTING, 98, 100))
    for task, phase, began, over in parts:
        story.pod(run, task, None, (phase, began, over))
    story.pod(run, "scheduler", "node-0", (SCHEDULING, 0, 0), (PULLING, 0, 10), (STARTING, 10, 11), (SERVING, 11, 100))
    story.pod(run, "worker", "node-0", (SCHEDULING, 15, 15), (STARTING, 15, 21), (SERVING, 21, 100))
    second = story.pod(
        run, "worker-2", "node-1", (UNSCHEDULABLE, 15, 45), (PULLING, 45, 60), (STARTING, 60, 61), (SERVING, 61, 100)
    )
    assert second
    story.pod(run, "stage", "node-0", (SCHEDULING, 65, 65), (STARTING, 65, 66), (RUNNING, 66, 96))
    for task in ("scheduler", "worker", "worker-2"):
        story.sample(1.0, REQUESTED_GPUS, 1.0, task=task)
        story.sample(1.0, REQUESTED_CPU_CORES, 1.0, task=task)
    story.sample(1.0, REQUESTED_CPU_CORES, 0.5, task="stage")
    story.sample(1.0, REQUESTED_GPUS, 0.0, task="stage")
    story.run(run, 0.0, 100.0)
    return story


def test_a_serving_pod_does_not_hide_what_the_run_waits_for(tmp_path):
    split = waits(dask().timeline(tmp_path))
    (seconds,) = split.seconds
    assert seconds.sum() == pytest.approx(100.0)
    found = {name: split.of(name)[0] for name in (PULLING, STARTING, RUNNING, SERVING, QUEUED, COMPUTING)}
    assert found == pytest.approx(
        {PULLING: 10 + 15, STARTING: 1 + 6 + 1 + 1, RUNNING: 30, SERVING: 0, QUEUED: 4 + 4, COMPUTING: 4}
    )


def test_the_critical_path_ends_with_the_stage_and_goes_through_the_last_worker(tmp_path):
    path = critical_path(dask().timeline(tmp_path))
    assert path.whole_s == pytest.approx(100.0)
    assert path.shares[PULLING] == pytest.approx(0.25)
    assert path.shares[RUNNING] == pytest.approx(0.30)
    assert path.shares[CONTROLLER] == pytest.approx(0.08)  # 11 to 15 s, 61 to 65 s
    assert path.shares[SERVING] == 0.0


def test_pulls_cost_a_run_what_its_critical_path_spends_on_them(tmp_path):
    found = image_pulls(dask().timeline(tmp_path))
    assert (found.pods, found.run_s, found.share) == (2, pytest.approx(25.0), pytest.approx(0.25))


def test_without_pulls_or_new_gpu_nodes_there_is_nothing_to_say(tmp_path):
    story = Story(intended=1)
    run = story.submit(0, due=0.0, lag=0.0, service=0.0)
    story.pod(run, "a", "node-0", (RUNNING, 0.0, 5.0))
    story.run(run, 0.0, 5.0)
    assert image_pulls(story.timeline(tmp_path)) is None
    assert gpu_drivers(story.timeline(tmp_path)) is None


def test_drivers_take_from_a_node_s_readiness_to_its_gpus(tmp_path):
    found = gpu_drivers(dask(drivers=4.5).timeline(tmp_path))
    assert (found.nodes, found.median_s, found.most_s) == (1, pytest.approx(4.5), pytest.approx(4.5))
    assert found.gpu_hours == pytest.approx(2 * 4.5 / 3600)


def test_the_phases_that_a_run_reports_itself_are_no_pods(tmp_path):
    timeline = dask().timeline(tmp_path)
    assert not timeline.executed
    found = pending(timeline)
    assert found.phase.count == 4
    # 11 s, 6 s, 46 s and 1 s
    assert {bound: 1 - share for bound, share in found.within.items()} == pytest.approx(
        {2.0: 0.75, 5.0: 0.75, 60.0: 0.0}
    )


def test_gpu_hours_used_and_charged_and_the_overhead_between_them(tmp_path):
    timeline = dask().timeline(tmp_path)
    paid = cost(timeline)
    used, charged = (100 + 85 + 55) / 3600, (2 * 100 + 2 * 70) / 3600
    assert {each.resource: each.held_hours for each in requested(timeline)}["GPU"] == pytest.approx(used, rel=0.02)
    assert paid.gpu_hours == pytest.approx(charged)
    assert paid.overhead == pytest.approx(1 - used / charged, abs=0.01)
    assert paid.busy_hours == pytest.approx((89 + 39) / 3600)
