"""How long runs wait for pods that a quota refused, and what the pods that hold it do meanwhile. By hand."""

import pytest

from harness.analysis.waits.pulls import cost_of_pulls
from harness.analysis.waits.quota_waits import quota_waits, refusals, waits_for
from harness.analysis.waits.store_cost import store_cost
from harness.model.phases import PULLING, RUNNING, STORING, TASK
from harness.model.records import Span
from tests.support.timelines import Story

REFUSED = 'pods "{}" is forbidden: exceeded quota: tight, requested: {}=1, used: {}=4, limited: {}=4'


def words(pod, resource="requests.cpu"):
    return REFUSED.format(pod, *3 * [resource])


@pytest.fixture
def story():
    """Two runs of 100 s; each has a step at once, and another from 60 s on."""
    found = Story(intended=2)
    for seq in range(2):
        run = found.submit(seq, due=0.0)
        found.pod(run, "first", "node-0", (RUNNING, 0.0, 10.0))
        found.pod(run, "train", "node-0", (RUNNING, 60.0, 100.0))
        found.run(run, 0.0, 100.0)
    return found


def share(story, tmp_path):
    return quota_waits(story.timeline(tmp_path)).share


def test_a_run_waits_from_the_first_refusal_until_that_pod_comes(story, tmp_path):
    pod = story.pod("run-0000", "test", "node-0", (RUNNING, 30.0, 40.0))
    for at in (10.0, 20.0):
        story.event(at, "Task", "test", "PENDING", words(pod), run="run-0000")
    assert share(story, tmp_path) == pytest.approx(20 / 200)


def test_waits_for_several_pods_of_a_run_count_once(story, tmp_path):
    for since, until in ((10.0, 30.0), (20.0, 35.0), (50.0, 55.0)):
        pod = story.pod("run-0000", f"test-{since}", "node-0", (RUNNING, until, 60.0))
        story.event(since, "Task", "test", "PENDING", words(pod), run="run-0000")
    assert share(story, tmp_path) == pytest.approx(30 / 200)


@pytest.mark.parametrize("name", ["train", "x"])
def test_a_pod_that_comes_under_another_name_is_known_by_its_task_and_else_the_run_waits_to_its_end(
    name, story, tmp_path
):
    story.event(20.0, "Task", name, "PENDING", words("y"), run="run-0000")
    assert share(story, tmp_path) == pytest.approx((40 if name == "train" else 80) / 200)


def test_pods_that_came_before_do_not_end_the_wait(story, tmp_path):
    story.event(70.0, "Task", "train", "PENDING", words("y"), run="run-0000")
    assert share(story, tmp_path) == pytest.approx(30 / 200)


def test_where_only_some_workflows_were_read_their_runs_stand_for_all(story, tmp_path):
    story.event(20.0, "Task", "train", "PENDING", words("y"), run="run-0000")
    story.records.append(Span("run-0000", "node-1", TASK, story.records[0].due_at, None, task="train"))
    assert share(story, tmp_path) == pytest.approx(40 / 100)


def test_without_refusals_nothing_waits(story, tmp_path):
    timeline = story.timeline(tmp_path)
    assert (quota_waits(timeline).share, waits_for(timeline, refusals(timeline)).resource) == (0.0, "")


@pytest.mark.parametrize(
    ("resource", "lacked"),
    [("requests.cpu", "cpu"), ("pods", "pods"), ("limits.memory", "limits.memory"), ("requests.nvidia.com/gpu",) * 2],
)
def test_what_lacks_is_what_most_refusals_name(resource, lacked, story, tmp_path):
    for k, name in enumerate((resource, resource, "requests.memory")):
        story.event(20.0 + k, "Task", "train", "PENDING", words("y", name), run="run-0000")
    assert quota_waits(story.timeline(tmp_path)).resource == lacked.removeprefix("requests.")


@pytest.mark.parametrize(
    ("phase", "cost", "counts"),
    [(STORING, lambda timeline: store_cost(timeline).storing, 1.0), (PULLING, cost_of_pulls, 0.5)],
)
def test_what_those_do_that_hold_the_quota_costs_those_that_wait_for_it(phase, cost, counts, story, tmp_path):
    """The first run waits for 40 s; for the last 15 of them the second run's pod, which nothing waits for, is busy."""
    story.event(20.0, "Task", "train", "PENDING", words("y"), run="run-0000")
    story.pod("run-0001", "test", "node-0", (RUNNING, 10.0, 45.0), (phase, 45.0, 65.0))
    assert cost(story.timeline(tmp_path)) == pytest.approx(counts * 40 / 200 * 15 / 40)
