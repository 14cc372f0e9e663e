import numpy as np
import pytest
from scipy import stats

from harness.analysis.stats.trend import degradation, trend
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
