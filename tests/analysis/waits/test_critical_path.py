"""What the last pod of a run waited for, in fan-outs in which some pod always runs."""

import pytest

from harness.analysis.waits.critical_path import critical_path
from harness.analysis.waits.waits import waits_so_far
from harness.model.phases import (
    CONTROLLER,
    PROVISIONING,
    PULLING,
    RUNNING,
    SERVING,
    STORING,
    UNSCHEDULABLE,
    UPLOAD_SECONDS,
)
from tests.support.timelines import Story


def fan_out(*, late=0.0, pulls=(0.0, 0.0), waits=0.0) -> Story:
    """Two lanes of a driver and a step each; the second lane's step is created `late` after its driver's end."""
    story = Story(intended=1)
    story.node("node-0", -100, -90)
    run = story.submit(0, due=0.0, lag=0.0, service=0.0)
    story.pod(run, "a-driver", "node-0", (RUNNING, 0.0, 2.0))
    story.pod(run, "a", "node-0", (PULLING, 2.0, 2.0 + pulls[0]), (RUNNING, 2.0 + pulls[0], 30.0))
    story.pod(run, "b-driver", "node-0", (RUNNING, 0.0, 2.0))
    began = 2.0 + late
    placed = began + waits
    pulled = placed + pulls[1]
    story.pod(run, "b", "node-0", (UNSCHEDULABLE, began, placed), (PULLING, placed, pulled), (RUNNING, pulled, 40.0))
    story.run(run, 0.0, 40.0)
    return story


def test_the_controller_s_delay_shows_though_another_pod_runs_meanwhile(tmp_path):
    timeline = fan_out(late=20.0).timeline(tmp_path)
    assert waits_so_far(timeline).shares()[CONTROLLER] == 0
    assert critical_path(timeline).shares[CONTROLLER] == pytest.approx(0.5)
    assert critical_path(timeline).gaps_s.tolist() == [20.0]


@pytest.mark.parametrize(("pulls", "share"), [((10.0, 0.0), 0.0), ((0.0, 10.0), 0.25)])
def test_only_pulls_that_the_run_s_end_waited_for_count(pulls, share, tmp_path):
    assert critical_path(fan_out(pulls=pulls).timeline(tmp_path)).shares[PULLING] == pytest.approx(share)


def test_a_wait_for_a_node_is_parted_by_whether_one_was_coming(tmp_path):
    story = fan_out(waits=20.0)
    story.node("node-1", 10.0, 22.0)
    shares = critical_path(story.timeline(tmp_path)).shares
    assert shares[PROVISIONING] == pytest.approx(12 / 40)
    assert shares[UNSCHEDULABLE] == pytest.approx(8 / 40)


def test_the_chain_of_a_sequential_run_is_all_of_its_pods(tmp_path):
    story = Story(intended=1)
    run = story.submit(0, due=0.0, lag=0.0, service=0.0)
    for k in range(3):
        story.pod(run, f"step-{k}", "node-0", (RUNNING, 10.0 * k, 10.0 * k + 7.0))
    story.run(run, 0.0, 27.0)
    found = critical_path(story.timeline(tmp_path))
    assert found.gaps_s.tolist() == [3.0, 3.0]
    assert found.shares[RUNNING] == pytest.approx(21 / 27)


def test_runs_without_pods_have_no_chain(tmp_path):
    story = Story(intended=1)
    story.run(story.submit(0, due=0.0), 0.0, 10.0)
    assert critical_path(story.timeline(tmp_path)).runs == 0


def test_only_the_drivers_that_the_run_s_end_waited_for_count_as_driving(tmp_path):
    assert critical_path(fan_out().timeline(tmp_path)).driving == pytest.approx(2 / 40)


def test_only_the_storing_that_the_run_s_end_waited_for_counts_seen_in_logs_or_assumed(tmp_path):
    """Of 30 s that a task takes, 10 s are storing, as the log of its first pod shows."""
    story = Story(intended=2)
    for seq, running in enumerate((20.0, 30.0)):
        run = story.submit(seq, due=0.0, lag=0.0, service=0.0)
        story.pod(run, "aside", "node-0", (STORING, 0.0, 29.0))
        story.pod(run, "last", "node-0", (RUNNING, 0.0, running), *([] if seq else [(STORING, 20.0, 30.0)]))
        story.run(run, 0.0, 30.0)
    story.sample(30.0, UPLOAD_SECONDS, 10.0, pod="run-0000-last")
    found = critical_path(story.timeline(tmp_path))
    assert found.storing == pytest.approx(1 / 3)
    assert found.shares[STORING] == pytest.approx(1 / 6)


def one_run(end, *pods, others=()):
    """Pods as (task, stretches …), and others' runs that end with theirs."""
    story = Story(intended=1 + len(others))
    for seq, (over, made) in enumerate(((end, pods), *others)):
        run = story.submit(seq, due=0.0, lag=0.0, service=0.0)
        for task, *stretches in made:
            story.pod(run, task, "node-0", *stretches)
        story.run(run, 0.0, over)
    return story


@pytest.mark.parametrize(
    ("driver", "gap"),
    [("a-driver", 3.0), ("other-driver", 1.0)],  # its own one ended at 2 s; without one, the last that had ended
)
def test_a_pod_waited_for_its_own_driver_where_it_has_one(driver, gap, tmp_path):
    story = one_run(
        30.0, (driver, (RUNNING, 0.0, 2.0)), ("b", (RUNNING, 0.0, 4.0)), ("a", (RUNNING, 5.0, 30.0)),
    )  # fmt: skip
    found = critical_path(story.timeline(tmp_path))
    assert found.gaps_s.tolist() == [gap]
    assert found.driving == pytest.approx(2 / 30 if gap == 3.0 else 0.0)


@pytest.mark.parametrize(("begins", "running"), [(9.0, 31.0), (8.9, 21.1)])
def test_a_pod_may_seem_to_begin_a_second_before_the_one_that_it_waited_for_has_ended(begins, running, tmp_path):
    found = critical_path(one_run(30.0, ("a", (RUNNING, 0.0, 10.0)), ("b", (RUNNING, begins, 30.0))).timeline(tmp_path))
    assert found.shares[RUNNING] * found.whole_s == pytest.approx(running)
    assert found.gaps_s.tolist() == [0.0] * (begins == 9.0)


def test_all_drivers_and_all_storing_of_a_chain_count(tmp_path):
    found = critical_path(one_run(
        20.0,
        ("a-driver", (RUNNING, 0.0, 2.0)), ("a", (RUNNING, 2.0, 8.0), (STORING, 8.0, 8.5)),
        ("b-driver", (RUNNING, 9.0, 12.0)), ("b", (RUNNING, 12.0, 19.0), (STORING, 19.0, 20.0)),
    ).timeline(tmp_path))  # fmt: skip
    assert (found.driving, found.storing) == (pytest.approx(5 / 20), pytest.approx(1.5 / 20))
    assert (found.runs, found.whole_s, found.gaps_s.tolist()) == (1, pytest.approx(20.0), [0.0, 0.5, 0.0])


def test_of_a_pod_that_serves_others_wait_for_the_start_and_runs_without_pods_are_not_followed(tmp_path):
    story = one_run(
        12.0, ("a", (RUNNING, 0.0, 10.0)), ("served", (SERVING, 10.0, 60.0)),
        others=[(40.0, []), (20.0, [("a", (RUNNING, 0.0, 20.0))])],
    )  # fmt: skip
    found = critical_path(story.timeline(tmp_path))
    assert (found.runs, found.whole_s) == (2, pytest.approx(32.0))
    assert found.shares[RUNNING] == pytest.approx(30 / 32)
    assert found.shares[SERVING] == 0.0
