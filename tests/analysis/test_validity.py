import pytest

from harness.analysis.validity import SENDING_RATE, validity
from harness.model import Outcome
from harness.model.phases import SKIPPED
from tests.support.timelines import Story


def clean(count=100, **changes):
    story = Story(intended=count)
    for seq in range(count):
        story.run(story.submit(seq, due=0.1 * seq, **changes), 0.1 * seq, 20.0)
    return story


def reasons(story, tmp_path):
    return " | ".join(validity(story.timeline(tmp_path)).reasons)


def test_a_clean_test_is_valid(tmp_path):
    assert validity(clean().timeline(tmp_path)).valid


@pytest.mark.parametrize(("lag", "valid"), [(0.0049, True), (0.0051, False)])
def test_the_median_lag_is_bounded(tmp_path, lag, valid):
    assert validity(clean(lag=lag).timeline(tmp_path)).valid is valid


@pytest.mark.parametrize(("late", "lag", "said"), [(3, 0.060, "p99"), (1, 0.240, ""), (1, 0.260, "maximum")])
def test_a_few_late_arrivals_are_allowed_a_very_late_one_is_not(tmp_path, late, lag, said):
    story = clean(197 if late == 3 else 199)
    for k in range(late):
        seq = story.intended + k
        story.run(story.submit(seq, due=30.0 + k, lag=lag), 30.0, 40.0)
    story.intended += late
    found = reasons(story, tmp_path)
    assert said in found
    assert bool(found) is bool(said)


def test_simultaneous_arrivals_may_be_sent_one_after_the_other(tmp_path):
    story = Story(intended=400)
    for seq in range(400):
        story.run(story.submit(seq, lag=seq / SENDING_RATE + 0.001), 0.0, 9.0)
    assert validity(story.timeline(tmp_path)).valid


def test_a_burst_that_leaves_too_slowly_is_invalid(tmp_path):
    story = Story(intended=400)
    for seq in range(400):
        story.run(story.submit(seq, lag=3 * seq / SENDING_RATE), 0.0, 9.0)
    assert "left late" in reasons(story, tmp_path)


def test_unaccounted_arrivals_are_listed(tmp_path):
    story = clean(10)
    story.intended = 12
    assert "2 arrivals are unaccounted for: seq 10, 11" in reasons(story, tmp_path)


def test_missed_arrivals_say_why(tmp_path):
    story = clean(9)
    story.intended = 10
    story.submit(9, lag=None, outcome=Outcome.MISSED, status=None, error="5 requests were in flight already")
    assert "1 of 10 arrivals were never sent: 5 requests were in flight already" in reasons(story, tmp_path)


def test_rejected_arrivals_do_not_make_a_test_invalid(tmp_path):
    story = clean(9)
    story.intended = 10
    story.submit(9, due=0.9, outcome=Outcome.REJECTED, status=503, error="busy")
    assert validity(story.timeline(tmp_path)).valid


@pytest.mark.parametrize(("unfinished", "valid"), [(1, True), (2, False)])
def test_one_run_in_a_hundred_may_be_unfinished(tmp_path, unfinished, valid):
    story = clean(100 - unfinished)
    story.intended = 100
    for seq in range(100 - unfinished, 100):
        story.submit(seq, due=0.1 * seq)
    assert validity(story.timeline(tmp_path)).valid is valid


def test_cached_runs_lost_workers_and_interrupts_are_reasons(tmp_path):
    story = clean(10)
    story.intended = 11
    story.run(story.submit(10, due=1.0), 1.0, 2.0, SKIPPED)
    story.event(5.0, "Test", "a-run", "WorkerLost", "worker 2 (pod-7) is gone")
    story.event(6.0, "Test", "test", "Interrupted")
    found = reasons(story, tmp_path)
    assert "1 runs came from the cache" in found
    assert "lost: worker 2 (pod-7) is gone" in found
    assert "interrupted" in found


def test_nothing_at_all_is_not_valid(tmp_path):
    assert "nothing was submitted" in reasons(Story(), tmp_path)
