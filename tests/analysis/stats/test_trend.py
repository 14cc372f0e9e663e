import numpy as np
import pytest
from scipy import stats

from harness.analysis.stats.trend import Trend, degradation, trend
from tests.support.injected import steady
from tests.support.timelines import burst


def test_the_slope_and_its_interval_agree_with_scipy():
    random = np.random.default_rng(1)
    x = np.arange(400.0)
    y = 30 + 0.17 * x + random.standard_normal(400) * 5
    ours, theirs = trend(x, y), stats.linregress(x, y)
    assert ours is not None
    assert (ours.slope, ours.explained) == pytest.approx((theirs.slope, theirs.rvalue**2))
    assert ours.high - ours.low == pytest.approx(2 * 1.959964 * theirs.stderr)


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
    half = 1.959964 * theirs.stderr
    assert (ours.slope, ours.low, ours.high, ours.explained) == pytest.approx(
        (theirs.slope, theirs.slope - half, theirs.slope + half, theirs.rvalue**2)
    )
    assert trend(np.arange(9.0), y[:9], least=9) is not None
    assert trend(np.ones(10), y) is None
    assert trend(np.arange(10.0), np.ones(10)).explained == 0.0


@pytest.mark.parametrize(("low", "explained", "grows"), [(0.1, 0.31, True), (0.0, 0.9, False), (0.1, 0.3, False)])
def test_durations_grow_where_that_is_significant_and_explains_much(low, explained, grows):
    assert Trend(1.0, low, 2.0, explained).grows is grows
