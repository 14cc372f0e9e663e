"""How long runs wait for pods that a quota refused, and what the pods that hold it do meanwhile. By hand."""

import pytest

from harness.analysis.waits.quota_waits import quota_waits
from harness.model.phases import RUNNING
from tests.support.timelines import Story

REFUSED = 'pods "{}" is forbidden: exceeded quota: tight, requested: {}=1, used: {}=4, limited: {}=4'


def words(pod, resource="requests.cpu"):
    return REFUSED.format(pod, *3 * [resource])


def two_runs(first_s):
    """Of 100 s; each has a step at once, and another from 60 s on."""
    found = Story(intended=2)
    for seq in range(2):
        run = found.submit(seq, due=0.0)
        found.pod(run, "first", "node-0", (RUNNING, 0.0, first_s))
        found.pod(run, "train", "node-0", (RUNNING, 60.0, 100.0))
        found.run(run, 0.0, 100.0)
    return found


@pytest.fixture
def story():
    return two_runs(58.0)


def share(story, tmp_path):
    return quota_waits(story.timeline(tmp_path))


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


@pytest.mark.parametrize(("first_s", "share_of_each"), [(10.0, 0.395), (49.0, 0.005), (50.0, 0.0)])
def test_where_a_refusal_was_seen_all_runs_wait_for_the_quota_beyond_the_controller_s_next_look(
    first_s, share_of_each, tmp_path
):
    """The observer saw one refusal, just before the pod came; each run waits from its first step's end to 60 s."""
    story = two_runs(first_s)
    assert share(story, tmp_path / "none") == 0.0
    story.event(60.0, "Task", "train", "PENDING", words("y"), run="run-0000")
    assert share(story, tmp_path / "one") == pytest.approx(share_of_each)


def test_without_pods_the_runs_whose_refusals_were_seen_stand_for_all(tmp_path):
    story = Story(intended=2)
    for seq in range(2):
        story.run(story.submit(seq, due=0.0), 0.0, 100.0)
    story.event(20.0, "Task", "train", "PENDING", words("y"), run="run-0000")
    assert share(story, tmp_path) == pytest.approx(80 / 100)


def test_without_refusals_nothing_waits(story, tmp_path):
    assert share(story, tmp_path) == 0.0
    assert share(two_runs(10.0), tmp_path / "later") == 0.0
