from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.result import analyse
from harness.analysis.slo import State, judge
from harness.detectors import diagnose
from harness.model import ConfigError, Outcome
from harness.model.errors import ExitCode
from harness.model.phases import CANCELED, FAILED, RUNNING, SUCCEEDED, UNSCHEDULABLE
from harness.model.plan import Limits
from harness.model.slo import QUANTITIES, RATIOS, parse_slo
from tests.support.timelines import Story


def test_an_slo_is_parsed_into_its_parts():
    slo = parse_slo(" p99.5( run.duration ) <= 1h30m ")
    assert (slo.measure, slo.quantity, slo.percentile, slo.operator, slo.limit, slo.unit) == (
        "percentile", "run.duration", 99.5, "<=", 5400.0, "s",
    )  # fmt: skip
    assert parse_slo("throughput > 360/h").limit == pytest.approx(0.1)
    assert parse_slo("failed_ratio < 2%").limit == pytest.approx(0.02)
    assert parse_slo("mean(phase.image_pull) < 500ms").quantity == "phase.image_pull"


@given(st.sampled_from(QUANTITIES), st.sampled_from(["mean", "min", "max", "p50", "p99.9"]), st.integers(1, 10**6))
def test_every_quantity_has_every_statistic(quantity, statistic, seconds):
    slo = parse_slo(f"{statistic}({quantity}) < {seconds}s")
    assert (slo.quantity, slo.limit) == (quantity, seconds)


@given(st.text(max_size=40))
def test_any_other_text_is_a_configuration_error(text):
    with suppress(ConfigError):
        slo = parse_slo(text)
        assert slo.quantity in QUANTITIES or slo.measure in {*RATIOS, "throughput"}


@pytest.mark.parametrize(
    "text", ["", "p95(run.duration)", "p95 < 3s", "p0(run.duration) < 1s", "p101(run.duration) < 1s", "speed < 3",
             "p95(run.speed) < 3s", "failed_ratio < many", "throughput > 3/w", "p95(run.duration) < soon",
             "failed_ratio < nan", "failed_ratio < 5", "p95(run.duration) < inf"],
)  # fmt: skip
def test_meaningless_slos_are_rejected(text):
    with pytest.raises(ConfigError, match="SLO") as refused:
        parse_slo(text)
    assert refused.value.hint


def hundred(*slos, unfinished=0):
    """Runs of 1 s to 100 s, of which 5 failed; the last `unfinished` were not over."""
    story = Story(intended=100, slos=slos)
    for seq in range(100):
        run = story.submit(seq, lag=0.0, service=0.1)
        story.pod(run, "a", "n", (UNSCHEDULABLE, 0.1, 0.6))
        over = None if seq >= 100 - unfinished else float(seq + 1)
        story.run(run, 0.0, over, FAILED if seq < 5 else "SUCCEEDED")
    if unfinished:
        story.event(100.0, "Test", "test", "DrainTimedOut")
    return story


def judged(tmp_path, *slos, unfinished=0):
    return judge(hundred(*slos, unfinished=unfinished).timeline(tmp_path))


def test_slos_are_judged_by_measured_values(tmp_path):
    results = judged(
        tmp_path, "p95(run.duration) < 95s", "p95(run.duration) <= 95s", "max(run.duration) < 101s",
        "failed_ratio <= 5%", "succeeded_ratio > 0.95", "throughput > 3000/h", "throughput > 4000/h",
        "mean(submit.latency) < 101ms", "p50(phase.unschedulable) < 0.51s", "missed_ratio < 0.01",
    )  # fmt: skip
    assert [r.met for r in results] == [False, True, True, True, False, True, False, True, True, True]
    assert results[0].value == 95.0
    assert (results[0].low, results[0].high) == (90.0, None)  # a hundred runs do not bound their p95 from above
    assert results[5].value == pytest.approx(95 / 100)  # succeeded, not merely over


def test_each_quantity_has_its_own_values(tmp_path):
    """Due at 0 s, sent after 2 s, answered after 5 s, over after 30 s; the pod waited 4 s for a node."""
    quantities = {
        "submit.lag": 2.0, "submit.latency": 5.0, "submit.service": 3.0, "run.duration": 30.0,
        "phase.unschedulable": 4.0, "phase.running": 11.0,
    }  # fmt: skip
    story = Story(intended=1, slos=tuple(f"max({name}) < 1h" for name in quantities))
    run = story.submit(0, lag=2.0, service=3.0)
    story.pod(run, "a", "n", (UNSCHEDULABLE, 6.0, 10.0), (RUNNING, 10.0, 21.0))
    story.run(run, 4.0, 30.0)
    found = {result.slo.quantity: result.value for result in judge(story.timeline(tmp_path))}
    assert found == pytest.approx(quantities)


def test_censored_runs_decide_an_slo_only_when_certain(tmp_path):
    results = judged(
        tmp_path, "max(run.duration) < 99s", "max(run.duration) < 200s", "max(run.duration) > 50s",
        "p50(run.duration) < 60s", "min(run.duration) < 5s", unfinished=10,
    )  # fmt: skip
    assert [r.met for r in results] == [False, None, True, True, None]
    assert "10 runs had not finished" in results[1].why


def test_runs_that_all_failed_quickly_meet_no_slo(tmp_path):
    story = Story(intended=2, slos=("p50(run.duration) < 1h",))
    for seq in range(2):
        story.run(story.submit(seq), 0.0, 1.0, FAILED)
    (result,) = judge(story.timeline(tmp_path))
    assert (result.met, result.why) == (None, "no run succeeded: the time to failure is not a run duration")


def test_rejected_and_canceled_runs_count_as_failed(tmp_path):
    story = Story(intended=4, slos=("failed_ratio < 0.5", "rejected_ratio < 0.5"))
    for seq, state in enumerate((SUCCEEDED, CANCELED)):
        story.run(story.submit(seq), 0.0, 1.0, state)
    for seq in (2, 3):
        story.submit(seq, outcome=Outcome.REJECTED, status=500, error="the table is full")
    assert [(r.value, r.met) for r in judge(story.timeline(tmp_path))] == [(0.75, False), (0.5, False)]


def test_an_unobserved_quantity_is_not_judged(tmp_path):
    story = Story(intended=1, slos=("p95(run.duration) < 1s",))
    story.submit(0, outcome=Outcome.REJECTED, status=503, error="busy")
    result, _ = judge(story.timeline(tmp_path))
    assert result.met is None
    assert "no run.duration was observed" in result.why


def rejected(count, *slos, intended=100, **limits):
    story = Story(intended=intended, slos=slos, limits=Limits(**limits))
    for seq in range(intended):
        if seq < count:
            story.submit(seq, outcome=Outcome.REJECTED, status=502, error="<html>bad gateway</html>")
        else:
            story.run(story.submit(seq), 0.0, 1.0, SUCCEEDED)
    return story


@pytest.mark.parametrize(
    ("count", "slos", "limits", "found"),
    [
        (5, (), {}, []),
        (6, (), {}, [("rejected_ratio <= 0.05 (--max-error-ratio)", False)]),
        (
            6,
            ("throughput > 1/h",),
            {},
            [("throughput > 1/h", True), ("rejected_ratio <= 0.05 (--max-error-ratio)", False)],
        ),
        (6, ("rejected_ratio < 1%",), {}, [("rejected_ratio < 1%", False)]),
        (6, (), {"max_error_ratio": 0.06}, []),
        (100, (), {"max_error_ratio": 1.0}, []),
    ],
)
def test_a_test_with_many_rejected_submissions_fails_without_an_slo_too(tmp_path, count, slos, limits, found):
    results = judge(rejected(count, *slos, **limits).timeline(tmp_path))
    assert [(each.slo.text, each.met) for each in results] == found


def test_a_test_whose_only_submission_was_rejected_does_not_pass(tmp_path):
    timeline = rejected(1, intended=1).timeline(tmp_path)
    assert analyse(timeline, diagnose(timeline)).exit_code == ExitCode.SLO_FAILED


def lasting(*durations, slo):
    """Runs of these seconds; a negative one had not finished after so many."""
    story = Story(intended=len(durations), slos=(slo,))
    for seq, seconds in enumerate(durations):
        story.run(story.submit(seq, lag=0.0), 0.0, seconds if seconds > 0 else None)
    story.event(max(map(abs, durations)), "Test", "test", "DrainTimedOut")
    return story


@pytest.mark.parametrize(
    ("durations", "slo", "state", "needed"),
    [
        ([13.0] * 3, "p95(run.duration) < 20m", State.INCONCLUSIVE, None),
        ([13.0] * 19, "p95(run.duration) < 20m", State.INCONCLUSIVE, None),
        ([13.0] * 20, "p95(run.duration) < 20m", State.UNPROVEN, 110),
        ([13.0] * 110, "p95(run.duration) < 20m", State.MET, None),
        ([13.0] * 3, "p95(run.duration) < 5s", State.FAILED, None),
        ([1.0, 2.0, 13.0], "p95(run.duration) < 5s", State.INCONCLUSIVE, None),
        ([13.0] * 19, "p5(run.duration) > 5s", State.INCONCLUSIVE, None),
        ([13.0] * 20, "p5(run.duration) > 5s", State.UNPROVEN, 110),
        ([13.0] * 110, "p5(run.duration) > 5s", State.MET, None),
        ([13.0], "p50(run.duration) < 20s", State.INCONCLUSIVE, None),
        ([1.0, 2.0, 3.0, 4.0], "p50(run.duration) < 2.5s", State.UNPROVEN, None),
        ([1.0, 2.0, 3.0, 90.0], "mean(run.duration) < 50s", State.UNPROVEN, 14),
        ([1.0, 2.0, 3.0], "mean(run.duration) < 100s", State.MET, None),
        ([1.0], "mean(run.duration) < 100s", State.UNPROVEN, None),
        ([1.0, 2.0, 300.0], "mean(run.duration) < 100s", State.FAILED, None),
        ([1.0], "max(run.duration) < 2s", State.MET, None),
        ([1.0] * 3, "failed_ratio < 1%", State.UNPROVEN, 390),
        ([1.0] * 3, "throughput > 1/h", State.MET, None),
        ([1.0] * 39 + [-100.0], "p50(run.duration) < 2s", State.MET, None),
        ([1.0] * 3 + [-100.0], "p75(run.duration) < 2s", State.UNPROVEN, None),
        ([1.0] * 3 + [4.0] * 3 + [-2.0] * 4, "p50(run.duration) < 3s", State.FAILED, None),  # by Kaplan and Meier it is 4
    ],
)  # fmt: skip
def test_an_slo_is_proven_by_its_whole_interval_and_else_only_met(tmp_path, durations, slo, state, needed):
    (result,) = judge(lasting(*durations, slo=slo).timeline(tmp_path))
    assert (result.state, result.runs_needed) == (state, needed)


@pytest.mark.parametrize("slo", ["failed_ratio < 2%", "p90(run.duration) < 50s", "mean(run.duration) < 8s"])
def test_as_many_runs_as_are_said_to_prove_an_slo_do(tmp_path, slo):
    durations = [1.0] * 19 + [99.0]
    (few,) = judge(lasting(*durations, slo=slo).timeline(tmp_path / "few"))
    assert few.state is State.UNPROVEN
    (many,) = judge(lasting(*durations * -(-few.runs_needed // 20), slo=slo).timeline(tmp_path / "many"))
    assert many.state is State.MET


@pytest.mark.parametrize(("undecided", "code"), [(False, ExitCode.OK), (True, ExitCode.SLO_FAILED)])
def test_what_is_not_proven_passes_unless_the_user_says_otherwise(tmp_path, undecided, code):
    story = lasting(*[1.0] * 30, slo="failed_ratio < 1%")
    story.limits = Limits(fail_undecided=undecided)
    timeline = story.timeline(tmp_path)
    assert analyse(timeline, diagnose(timeline)).exit_code == code


def test_a_ratio_has_a_binomial_interval_and_may_be_undecided(tmp_path):
    clear, close = judge(hundred("failed_ratio < 0.5", "failed_ratio < 0.06").timeline(tmp_path))
    assert (clear.met, clear.state) == (True, State.MET)
    assert (close.met, close.state) == (True, State.UNPROVEN)
    assert close.low < 0.05
    assert close.high > 0.06


@pytest.mark.parametrize(
    ("durations", "slo", "value", "met", "low", "why"),
    [
        ([1.0, -9.0], "max(run.duration) < 5s", 9.0, False, 9.0, "1 runs had not finished: the value is at least 9 s"),
        ([1.0, -9.0], "max(run.duration) < 50s", None, None, None, "1 runs had not finished: the value is at least 9 s"),
        ([1.0] * 10 + [-9.0] * 30, "p90(run.duration) < 5s", 9.0, False, 9.0,
         "30 runs had not finished: the value is at least 9 s"),
        ([3.0, 1.0, 2.0], "p95(run.duration) < 20m", 3.0, None, 2.0,
         "3 values are too few for this quantile, it takes 20 or more"),
        ([5.0, 1.0], "min(run.duration) > 2s", 1.0, False, None, ""),
        ([5.0, 1.0], "max(run.duration) < 9s", 5.0, True, None, ""),
    ],
)  # fmt: skip
def test_what_is_known_of_a_value_is_told_with_the_reason(tmp_path, durations, slo, value, met, low, why):
    (result,) = judge(lasting(*durations, slo=slo).timeline(tmp_path))
    assert (result.value, result.met, result.low, result.why) == (value, met, low, why)


def test_of_no_arrivals_none_failed_and_none_succeeded(tmp_path):
    found = judge(Story(slos=("failed_ratio < 50%", "succeeded_ratio > 50%")).timeline(tmp_path))
    assert [(each.slo.measure, each.value, each.state) for each in found] == [
        ("failed_ratio", 0.0, State.MET), ("succeeded_ratio", 0.0, State.FAILED),
    ]  # fmt: skip
