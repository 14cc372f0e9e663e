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
