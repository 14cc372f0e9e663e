"""Recommendations worked by hand: the best variant, those not eligible, and significance."""

import numpy as np
import pytest

from harness.analysis.stats.compare import Measurement
from harness.analysis.stats.recommend import recommend


def measured(metric, repetitions=5, scale="", **means):
    return [
        Measurement(variant, scale, str(k), metric, mean * (1 + 0.001 * k))
        for variant, mean in means.items()
        for k in range(repetitions)
    ]


def recommended(*groups):
    return recommend([m for group in groups for m in group], np.random.default_rng(1), paired=False)


def test_the_variant_closest_to_the_best_of_all_metrics_is_recommended():
    found = recommended(
        measured("makespan (s)", a=100, b=200, c=110), measured("throughput (runs/h)", a=50, b=25, c=100)
    )
    assert found.variant == "c"
    assert found.next == "a"
    assert found.shortfall == pytest.approx({"a": 2**0.5, "b": 8**0.5, "c": 1.1**0.5}, rel=1e-3)
    assert found.better == ("throughput (runs/h) (+100%)",)
    assert found.worse == ("makespan (s) (+10%)",)


def test_a_variant_that_loses_runs_is_not_eligible():
    found = recommended(measured("makespan (s)", a=100, b=20, c=130), measured("failed_ratio", a=0.0, b=0.2, c=0.0))
    assert (found.variant, found.failing) == ("a", ("b",))
    assert "More runs fail with b" in found.sentence


def test_single_tests_show_no_significance_and_few_are_not_significant():
    assert "can't show significance" in recommended(measured("makespan (s)", 1, a=100, b=200)).sentence
    assert "No difference from b is significant" in recommended(measured("makespan (s)", 2, a=100, b=200)).sentence


def test_without_a_metric_with_a_known_direction_there_is_no_recommendation():
    assert recommended(measured("flux", a=1, b=2)) is None
    assert recommended(measured("makespan (s)", a=1, b=2), measured("failed_ratio", a=0.0, b=1.0)) is None


@pytest.mark.parametrize(
    ("metric", "better"),
    [
        ("throughput (runs/h)", "b"), ("goodput (runs/node-hour)", "b"), ("goodput (runs/money)", "b"),
        ("run.duration p95 (s)", "a"), ("run.duration", "a"), ("Time to repair", "a"), ("submit.latency p95", "a"),
        ("makespan", "a"), ("work lost (share)", "a"), ("imbalance (Gini)", "a"), ("cold starts (S)", "a"),
    ],
)  # fmt: skip
def test_the_name_of_a_metric_says_which_way_is_better(metric, better):
    assert recommended(measured(metric, a=1, b=2)).variant == better


@pytest.mark.parametrize(("more", "failing"), [(0.011, ("b",)), (0.009, ())])
def test_one_percent_more_failures_are_allowed(more, failing):
    rows = measured("makespan (s)", 1, a=100, b=90, c=80), measured("failed_ratio", 1, a=0.1, b=0.1 + more, c=0.1)
    assert recommended(*rows).failing == failing


def test_failures_at_one_scale_are_enough():
    rows = measured("makespan (s)", 1, a=100, b=90, c=80)
    low, high = (measured("failed_ratio", 1, scale=s, a=0.0, b=b, c=0.0) for s, b in (("10", 0.0), ("50", 0.5)))
    assert recommended(rows, low, high).failing == ("b",)


def test_what_one_variant_lacks_or_has_as_0_is_not_compared():
    rows = measured("makespan (s)", 1, a=100, b=50)
    more = measured("throughput", 1, a=9), measured("submit.latency p95 (s)", 1, a=0, b=5)
    assert recommended(rows, *more).shortfall == pytest.approx({"a": 2.0, "b": 1.0})


def test_scales_are_named_and_count_by_themselves():
    found = recommended(
        measured("makespan (s)", scale="10", a=100, b=50), measured("makespan (s)", scale="50", a=1, b=3)
    )
    assert (found.variant, found.next) == ("a", "b")
    assert found.shortfall == pytest.approx({"a": 2**0.5, "b": 3**0.5}, rel=1e-3)
    assert (found.better, found.worse) == (("makespan (s) at 50 (-67%)",), ("makespan (s) at 10 (+100%)",))
    assert (found.compared, found.repeated) == (2, True)


def test_a_metric_that_shows_no_direction_is_not_counted():
    found = recommended(measured("makespan (s)", a=1, b=2), measured("flux", a=1, b=9))
    assert (found.compared, found.better, found.worse) == (1, ("makespan (s) (-50%)",), ())


def test_one_variant_that_was_tested_once_shows_no_significance():
    found = recommended(measured("makespan (s)", 1, a=100), measured("makespan (s)", 5, b=200))
    assert found.repeated is False


def test_with_one_eligible_variant_there_is_no_recommendation():
    assert recommended(measured("makespan (s)", a=1)) is None
    assert recommended(measured("makespan (s)", a=1, b=2), measured("failed_ratio", a=0.5, b=0.0)) is None


@pytest.mark.parametrize(
    ("groups", "sentence"),
    [
        (
            [measured("makespan (s)", 1, a=100, b=200), measured("failed_ratio", 1, a=0.0, b=0.0, c=0.5, d=0.5)],
            (
                "Recommended: a. Geometric-mean ratio to the best variant over 1 comparisons (1.00 = best): a 1.00, b 2.00. "
                "More runs fail with c, d. Single tests can't show significance: repeat them."
            ),
        ),
        (
            [measured("makespan (s)", a=100, b=200)],
            (
                "Recommended: a. Geometric-mean ratio to the best variant over 1 comparisons (1.00 = best): a 1.00, b 2.00. "
                "Significantly better than b in makespan (s) (-50%)."
            ),
        ),
        (
            [measured("makespan (s)", 2, a=100, b=200)],
            (
                "Recommended: a. Geometric-mean ratio to the best variant over 1 comparisons (1.00 = best): a 1.00, b 2.00. "
                "No difference from b is significant: run more tests, or choose either."
            ),
        ),
    ],
)
def test_a_recommendation_is_text(groups, sentence):
    assert recommended(*groups).sentence == sentence


def test_a_variant_whose_failures_were_not_measured_counts_as_without_any():
    rows = measured("makespan (s)", 1, a=100, b=90), measured("failed_ratio", 1, a=0.5)
    assert recommended(*rows).failing == ()
