from dataclasses import replace

import pytest

from harness.analysis.ledger import ledger
from harness.analysis.result import analyse
from harness.analysis.validity import SENDING_RATE, validity
from harness.model import Outcome
from harness.model.findings import Diagnosis, Finding
from harness.model.phases import SKIPPED
from tests.support.timelines import Story, at


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


def test_a_step_of_a_clock_is_a_reason_and_named(tmp_path):
    story = clean(40)
    story.event(3.0, "Test", "test", "ClockStepped", "the load generator's clock stepped by -30.0 s")
    assert "generator's clock stepped by -30.0 s: durations are wrong" in reasons(story, tmp_path / "a")
    story = Story(intended=40)
    for seq in range(40):
        story.run(story.submit(seq, due=float(seq)), float(seq + 30 * (seq >= 20)), 90.0)
    assert "the platform's clock stepped by about +30 s against" in reasons(story, tmp_path / "b")


def answered(count, ids, **changes):
    """A story in which `count` submissions are answered with `ids` different run ids."""
    story = Story(intended=count)
    for seq in range(count):
        story.submit(seq, due=float(seq), **changes)
        story.records[-1] = replace(story.records[-1], run=f"run-{seq % ids:04d}")
    for k in range(ids):
        story.run(f"run-{k:04d}", float(k), 200.0, name=f"s{k}-plant")
    return story


def test_a_platform_that_repeats_run_ids_is_found_out(tmp_path):
    timeline = answered(75, 30).timeline(tmp_path)
    assert validity(timeline).ambiguous == "75 accepted submissions were answered with only 30 different run ids"
    assert (ledger(timeline).succeeded, ledger(timeline).in_flight) == (30, 45), "no more succeeded than there are"


@pytest.mark.parametrize(
    ("name", "created", "doubt"),
    [
        ("s3-plant", 3.2, True),
        ("s3-plant", 3.0, True),  # whole seconds, rounded down
        ("s3-plant", -50.0, False),  # an earlier test's
        ("another", 3.2, False),
        ("", 3.2, False),
    ],
)
def test_a_second_run_of_one_name_is_a_doubt_about_the_test(tmp_path, name, created, doubt):
    story = clean(10)
    for k in range(10):
        story.records[3 * k] = replace(story.records[3 * k], due_at=at(float(k)), sent_at=at(k + 0.1))
    story.run("twin", created, 30.0, name=name)
    found = validity(story.timeline(tmp_path)).ambiguous
    assert ("1 more run with names of this test's runs" in found) is doubt


def test_runs_behind_answers_without_an_id_are_counted_and_the_test_is_doubted(tmp_path):
    story = clean(9)
    story.intended = 10
    story.submit(9, due=0.9, outcome=Outcome.REJECTED, status=200, error='not a run: {"run_id": null}')
    story.run("run-x", 0.9, 20.0, name="s9-plant")
    timeline = story.timeline(tmp_path)
    assert ledger(timeline).succeeded == 10
    assert "1 submission had an answer without a run id" in validity(timeline).ambiguous


def test_an_error_whose_run_exists_stays_an_error(tmp_path):
    story = clean(9)
    story.intended = 10
    story.submit(9, due=0.9, outcome=Outcome.REJECTED, status=504, error="gateway timeout")
    story.run("run-x", 0.9, 20.0, name="s9-plant")
    timeline = story.timeline(tmp_path)
    assert (ledger(timeline).rejected, validity(timeline).ambiguous) == (1, "")


def test_the_headline_is_the_doubt_about_the_test_and_no_finding(tmp_path):
    timeline = answered(75, 30).timeline(tmp_path)
    accusation = Finding("store-full", "The store is full", 0.9, (), "")
    result = analyse(timeline, Diagnosis(validity(timeline), (accusation,)))
    assert result.headline.startswith("Invalid test: 75 accepted submissions")
