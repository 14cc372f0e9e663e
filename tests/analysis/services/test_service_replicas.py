"""The service's replicas, from the samples that Kubernetes gives of them."""

import numpy as np
import pytest

from harness.analysis.services.service_replicas import service_replicas
from harness.model.phases import POD_CPU_CORES, REPLICA_WORKERS
from tests.support.injected.loads import executed, steady
from tests.support.timelines import Story

PODS = ("runtime-0", "runtime-1")


def shown(workers: dict[str, int], at: float = 0.0) -> Story:
    story = executed(60)
    for name, count in workers.items():
        story.sample(at, REPLICA_WORKERS, count, pod=name)
    return story


def measured(story: Story, cores: dict[str, float], windows: tuple[float, ...] = (0.0, 15.0, 30.0, 45.0)) -> Story:
    for at in windows:
        for name, used in cores.items():
            story.sample(at, POD_CPU_CORES, used, pod=name)
    return story


def test_workers_add_up_and_are_equal_or_not(tmp_path):
    def of(*counts: int):
        return service_replicas(shown(dict(zip(PODS, counts, strict=True))).timeline(tmp_path / str(counts)))

    same, other = of(4, 4), of(4, 2)
    assert (same.pods, same.workers, same.total, same.each) == (PODS, (4, 4), 8, 4)
    assert (other.total, other.each) == (6, 0)


def test_core_seconds_are_cores_times_the_windows_within_the_test(tmp_path):
    """Sixty executions, one a second: the window that ended at 0 s lies before them."""
    found = service_replicas(
        measured(shown(dict.fromkeys(PODS, 4)), {"runtime-0": 2.0, "runtime-1": 0.5}).timeline(tmp_path)
    )
    assert found.cpu_s == pytest.approx(np.array([2.0, 0.5]) * 45)


def test_cpu_time_alone_shows_the_replicas_but_not_their_workers(tmp_path):
    found = service_replicas(measured(executed(60), {"runtime-1": 1.0, "runtime-0": 2.0}).timeline(tmp_path))
    assert (found.pods, found.workers, found.total) == (PODS, (), 0)
    assert found.cpu_s == pytest.approx([90.0, 45.0])


@pytest.mark.parametrize("windows", [(30.0,), (0.0, 15.0)])
def test_one_window_does_not_compare_replicas(windows, tmp_path):
    found = service_replicas(
        measured(shown(dict.fromkeys(PODS, 4)), dict.fromkeys(PODS, 1.0), windows).timeline(tmp_path)
    )
    assert (found.total, found.cpu_s.size) == (8, 0)


def test_cpu_time_of_some_replicas_only_is_not_compared(tmp_path):
    found = service_replicas(measured(shown(dict.fromkeys(PODS, 4)), {"runtime-0": 1.0}).timeline(tmp_path))
    assert (found.pods, found.cpu_s.size) == (PODS, 0)


@pytest.mark.parametrize(("value", "at"), [(0, 30.0), (4, 30.0)])
def test_none_are_known_where_one_came_or_went_in_mid_test(value, at, tmp_path):
    story = shown(dict.fromkeys(PODS, 4))
    story.sample(at, REPLICA_WORKERS, value, pod="runtime-0" if not value else "runtime-2")
    assert service_replicas(story.timeline(tmp_path)).pods == ()


@pytest.mark.parametrize(("value", "at"), [(0, 70.0), (4, 9.0)])
def test_what_comes_at_the_start_was_listed_late_and_what_goes_after_the_end_was_there(value, at, tmp_path):
    story = shown(dict.fromkeys(PODS, 4))
    story.sample(at, REPLICA_WORKERS, value, pod="runtime-0" if not value else "runtime-2")
    assert service_replicas(story.timeline(tmp_path)).total == (8 if not value else 12)


def test_runs_that_are_made_of_pods_have_no_replicas(tmp_path):
    story = steady()
    story.sample(1.0, REPLICA_WORKERS, 4, pod="runtime-0")
    assert service_replicas(story.timeline(tmp_path)).pods == ()
