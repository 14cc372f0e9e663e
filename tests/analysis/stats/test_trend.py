import numpy as np
import pytest
from scipy import stats

from harness.analysis.stats.trend import Trend, degradation, trend
from tests.support.injected.loads import steady
from tests.support.timelines import burst


@pytest.mark.parametrize("count", [12, 400])
def test_the_interval_of_a_slope_covers_the_true_one(count):
    random, x = np.random.default_rng(1), np.arange(float(count))
    found = [trend(x, 30 + 0.17 * x + random.standard_normal(count) * 5) for _ in range(300)]
    assert np.mean([each.low <= 0.17 <= each.high for each in found]) == pytest.approx(0.95, abs=0.04)
    assert np.mean([each.slope for each in found]) == pytest.approx(0.17, rel=0.1)


def test_the_share_of_the_variance_is_that_of_the_line():
    x = np.arange(50.0)
    noise = np.tile([2.0, -2.0], 25)
    found = trend(x, 3 * x + noise)
    assert found.explained == pytest.approx(1 - np.var(noise) / np.var(3 * x + noise), abs=1e-3)
    assert trend(x, np.full(50, 4.0)) == Trend(0.0, 0.0, 0.0, 0.0)


def test_a_burst_degrades_and_a_sustained_load_does_not(tmp_path):
    queued, free = degradation(burst(100).timeline(tmp_path / "a")), degradation(steady(60).timeline(tmp_path / "b"))
    assert queued is not None
    assert free is not None
    assert queued.grows
    assert not free.grows
    # A burst of 100 on 16 slots is worked off at 16 runs in 12.1 s (three steps of 3.6 s, waits between): 0.76 s a run.
    assert queued.slope == pytest.approx(0.76, rel=0.15)


def test_a_few_runs_have_no_trend():
    assert trend(np.arange(9.0), np.arange(9.0)) is None


def test_ten_points_have_a_trend_unless_they_are_at_one_place():
    y = np.array([1.0, 2.0, 4.0, 3.0, 5.0, 6.0, 8.0, 7.0, 9.0, 11.0])
    ours, theirs = trend(np.arange(10.0), y), stats.linregress(np.arange(10.0), y)
    half = 2.306004 * theirs.stderr  # Student's t at 97.5 %, 8 degrees of freedom
    assert (ours.slope, ours.low, ours.high, ours.explained) == pytest.approx(
        (theirs.slope, theirs.slope - half, theirs.slope + half, theirs.rvalue**2)
    )
    assert trend(np.arange(9.0), y[:9], least=9) is not None
    assert trend(np.ones(10), y) is None
    assert trend(np.arange(10.0), np.ones(10)).explained == 0.0


@pytest.mark.parametrize(("low", "explained", "grows"), [(0.1, 0.31, True), (0.0, 0.9, False), (0.1, 0.3, False)])
def test_durations_grow_where_that_is_significant_and_explains_much(low, explained, grows):
    assert Trend(1.0, low, 2.0, explained).grows is grows
