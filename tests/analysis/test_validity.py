from dataclasses import replace

import pytest

from harness.analysis.ledger import ledger
from harness.analysis.result import analyse
from harness.analysis.validity import validity
from harness.detectors.controller import api_errors
from harness.detectors.doubts import credentials_refused
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


@pytest.mark.parametrize("behind", [0.0, 40.0])
def test_a_lost_answer_is_found_by_name_among_the_runs_of_earlier_tests(behind, tmp_path):
    """They are as old as the platform's clock is wrong, or older."""
    story = Story(intended=12)
    for seq in range(12):
        lost = {"outcome": Outcome.REJECTED, "status": None, "service": None, "error": "closed"} if seq % 4 == 0 else {}
        run = story.submit(seq, due=3.0 * seq, **lost)
        story.run(f"earlier-{seq}", 3.0 * seq - 60.0 - behind, 3.0 * seq - behind - 40.0, name=f"s{seq}-plant")
        story.run(run, 3.0 * seq - behind, 3.0 * seq - behind + 20.0, name=f"s{seq}-plant")
    timeline = story.timeline(tmp_path)
    assert validity(timeline).reasons == ()
    assert timeline.runs["run"].tolist() == [f"run-{seq:04d}" for seq in range(12)]


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


@pytest.mark.parametrize(
    ("status", "error", "valid"),
    [
        (401, "token has expired", False),
        (302, "a redirect to https://dex.example/auth", False),
        (407, "proxy authentication required", False),
        (200, "not a run: an HTML page", False),
        (200, "not a run: an HTML page, “Sign in”", False),
        (403, "no right", True),
        (503, "an HTML page", True),
    ],
)
def test_credentials_that_expire_are_the_load_generators_trouble(tmp_path, status, error, valid):
    story = clean(80)
    story.intended = 100
    for seq in range(80, 100):
        story.submit(seq, due=0.1 * seq, outcome=Outcome.REJECTED, status=status, error=error)
    timeline = story.timeline(tmp_path)
    assert validity(timeline).valid is valid
    assert bool(credentials_refused.detect(timeline)) is not valid
    assert bool(api_errors.detect(timeline)) is valid, "the platform is not accused"


def test_every_reason_is_a_sentence_with_its_figure_and_limit(tmp_path):
    story = Story(intended=30)
    for seq in range(10):
        story.run(story.submit(seq, due=float(seq), lag=0.3), float(seq), 20.0)
    story.run(story.submit(10, due=10.0, lag=0.3), 10.0, 20.0, SKIPPED)
    for seq in range(11, 15):
        story.submit(seq, due=float(seq), lag=0.3)
    for seq, error in ((15, "stopped"), (16, "broken"), (17, None)):
        story.submit(seq, due=float(seq), lag=None, outcome=Outcome.MISSED, status=None, error=error)
    for seq in (18, 19):
        story.submit(seq, due=float(seq), lag=0.3, outcome=Outcome.REJECTED, status=401, error="expired")
    for name in ("worker 2 (b)", "worker 1 (a)", "worker 1 (a)"):
        story.event(5.0, "Test", "a-run", "WorkerLost", name)
    story.event(30.0, "Test", "test", "Interrupted")
    found = validity(story.timeline(tmp_path))
    assert found.reasons == (
        "10 arrivals are unaccounted for: seq 20, 21, …, 29",
        "3 of 30 arrivals were never sent: broken",
        "arrivals left late: p50 300 ms, limit 160 ms, 1% of the median run duration",
        "arrivals left late: p99 300 ms, limit 160 ms, 1% of the median run duration",
        "3 load generator worker(s) lost: worker 1 (a), worker 2 (b)",
        "1 runs came from the cache, in whole or in part: their cost is unknown",
        "4 accepted runs (26.7%) had not finished when the observation ended, limit 1%",
        (
            "2 submissions (10.0%) were refused for the load generator's own credentials, the first 18 s into the test, "
            "limit 0.5%"
        ),
        "the test was interrupted",
    )
    assert found.figures == pytest.approx(
        {"late_p50_s": 0.3, "late_p99_s": 0.3, "late_max_s": 0.3, "censored_ratio": 4 / 15}
    )
    assert found.ambiguous == ""


def test_a_sound_test_has_figures_and_no_reason(tmp_path):
    found = validity(clean(3).timeline(tmp_path))
    assert (found.reasons, found.ambiguous) == ((), "")
    assert found.figures == pytest.approx(
        {"late_p50_s": 0.001, "late_p99_s": 0.001, "late_max_s": 0.001, "censored_ratio": 0.0}
    )


def test_nothing_at_all_has_figures_of_0(tmp_path):
    found = validity(Story().timeline(tmp_path))
    assert found.reasons == ("nothing was submitted and no run was observed",)
    assert set(found.figures.values()) == {0.0}


def test_more_arrivals_than_intended_are_told(tmp_path):
    story = clean(5)
    story.intended = 3
    assert reasons(story, tmp_path) == "2 more arrivals were recorded than intended"


def test_a_load_that_never_began_is_told_beside_what_is_missing(tmp_path):
    story = Story(intended=2, started=False)
    story.run(story.submit(0), 0.0, 5.0)
    assert reasons(story, tmp_path) == "1 arrivals are unaccounted for: seq 1 (the load did not record its start)"


@pytest.mark.parametrize(("refused", "valid"), [(1, True), (2, False)])
def test_one_in_two_hundred_may_be_refused_for_its_credentials(tmp_path, refused, valid):
    story = clean(200 - refused)
    story.intended = 200
    for seq in range(200 - refused, 200):
        story.submit(seq, due=0.1 * seq, outcome=Outcome.REJECTED, status=401, error="expired")
    assert validity(story.timeline(tmp_path)).valid is valid


def test_credentials_that_were_renewed_too_late_are_not_told_to_be_renewable(tmp_path):
    def fix(*statuses):
        story = Story(intended=len(statuses))
        for seq, status in enumerate(statuses):
            outcome = Outcome.ACCEPTED if status == 200 else Outcome.REJECTED
            story.submit(seq, due=float(seq), outcome=outcome, status=status, error="expired")
        (finding,) = credentials_refused.detect(story.timeline(tmp_path))
        return finding.fix

    assert "Give credentials that are renewed" in fix(200, 401, 401)
    assert "before the platform refuses the old one" in fix(200, 401, 200)
