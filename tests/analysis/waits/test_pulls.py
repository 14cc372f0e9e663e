"""What pulls cost the runs that wait for those that pull."""

import pytest

from harness.analysis.waits.pulls import cost_of_pulls
from harness.model.phases import PULLING, RUNNING
from tests.support.timelines import Story


def one_after_the_other(pulls, works, place, *, every=0.0, slots=1):
    """Runs of one pod each, of which `slots` are active at once."""
    story, free = Story(intended=len(pulls)), [0.0] * slots
    for seq, (pull, work) in enumerate(zip(pulls, works, strict=True)):
        run = story.submit(seq, due=every * seq, lag=0.0, service=0.0)
        start = max(min(free), every * seq)
        free[free.index(min(free))] = end = start + pull + work
        story.pod(run, "train", "node-0", (PULLING, start, start + pull), (RUNNING, start + pull, end))
        story.run(run, every * seq, end)
    return story.timeline(place)


def test_all_that_wait_for_a_slot_wait_for_the_pull_of_the_first_one(tmp_path):
    """They end after 60, 70, 80, 90 and 100 s, and without the pull each would end 50 s sooner."""
    timeline = one_after_the_other([50.0, 0.0, 0.0, 0.0, 0.0], [10.0] * 5, tmp_path)
    assert cost_of_pulls(timeline) == pytest.approx(250 / 400, rel=1e-3)


def test_a_pull_costs_those_that_came_before_it_nothing(tmp_path):
    timeline = one_after_the_other([0.0, 0.0, 0.0, 0.0, 50.0], [10.0] * 5, tmp_path)
    assert cost_of_pulls(timeline) == pytest.approx(50 / (10 + 20 + 30 + 40 + 100), rel=1e-3)


def test_no_more_than_the_wait_is_saved(tmp_path):
    """Runs that come 20 s apart wait 40, 30, 20 and 10 s; without the pull nobody would."""
    timeline = one_after_the_other([50.0, 0.0, 0.0, 0.0, 0.0], [10.0] * 5, tmp_path, every=20.0)
    assert cost_of_pulls(timeline) == pytest.approx((50 + 40 + 30 + 20 + 10) / (60 + 50 + 40 + 30 + 20), rel=0.15)


def test_without_a_limit_a_pull_costs_its_own_run_alone(tmp_path):
    timeline = one_after_the_other([50.0, 0.0, 0.0, 0.0, 0.0], [10.0] * 5, tmp_path, slots=5)
    assert cost_of_pulls(timeline) == pytest.approx(50 / 100, rel=1e-3)
