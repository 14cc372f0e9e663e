import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from harness.analysis.stats.quantiles import quantile, share_interval, summarize, survival


def test_quantiles_are_the_inverse_of_the_empirical_distribution():
    values = np.random.default_rng(1).lognormal(size=1001)
    for level in (0.01, 0.5, 0.9, 0.99):
        assert quantile(values, level).value == np.quantile(values, level, method="inverted_cdf")


def test_intervals_cover_the_true_quantile_as_often_as_they_say():
    random, hits, trials = np.random.default_rng(2), 0, 400
    truth = stats.lognorm(1.0).ppf(0.9)
    for _ in range(trials):
        found = quantile(random.lognormal(size=200), 0.9)
        assert found.low is not None
        assert found.high is not None
        hits += found.low <= truth <= found.high
    assert 0.92 <= hits / trials <= 0.99  # an exact 95 % interval does not exist: ranks are whole numbers


def test_a_small_sample_does_not_bound_its_high_quantiles():
    found = quantile(np.arange(20.0), 0.99)
    assert (found.value, found.high) == (19.0, None)


def test_survival_is_the_hand_worked_case():
    # Four ends at 6, one censored at 6, ...: the first rows of the 6-MP group of Freireich et al. (1963),
    # worked in every textbook: S(6) = 0.857, S(7) = 0.807, S(10) = 0.753, S(13) = 0.690, S(16) = 0.627.
    times = [6, 6, 6, 6, 7, 9, 10, 10, 11, 13, 16, 17, 19, 20, 22, 23, 25, 32, 32, 34, 35]
    ended = [1, 1, 1, 0, 1, 0, 1, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0]
    curve = survival(np.array(times, dtype=float), np.array(ended, dtype=bool))
    at = dict(zip(curve.times, curve.surviving, strict=True))
    expected = {6: 0.857, 7: 0.807, 10: 0.753, 13: 0.690, 16: 0.627, 22: 0.538, 23: 0.448}
    assert {t: round(at[t], 3) for t in expected} == expected
    deviation = dict(zip(curve.times, curve.deviation, strict=True))
    assert round(deviation[10], 3) == 0.096  # Greenwood, from the same tables


def test_survival_agrees_with_scipy():
    random = np.random.default_rng(3)
    values, over = random.exponential(size=300).round(2), random.random(300) < 0.7
    theirs = stats.ecdf(stats.CensoredData.right_censored(values, ~over)).sf
    ours = survival(values, over)
    assert ours.surviving[np.searchsorted(ours.times, theirs.quantiles)] == pytest.approx(theirs.probabilities)


def test_censored_values_push_the_quantile_up_and_are_never_dropped():
    values = np.arange(1.0, 101.0)
    over = np.ones(100, dtype=bool)
    over[40:60] = False
    found, dropped = quantile(values, 0.5, over), quantile(values[over], 0.5)
    assert found.value > dropped.value
    summary = summarize(values, over)
    assert (summary.count, summary.censored, summary.mean) == (100, 20, None)


def test_a_quantile_beyond_the_last_end_is_only_known_to_be_larger():
    over = np.array([True] * 5 + [False] * 5)
    found = quantile(np.arange(1.0, 11.0), 0.9, over)
    assert (found.value, found.at_least) == (None, 10.0)


def test_nothing_measured_is_nothing_known():
    summary = summarize(np.array([np.nan]))
    assert (summary.count, summary.mean, summary.at(0.5).value) == (0, None, None)


@given(total=st.integers(1, 3000), share=st.floats(0, 1))
def test_the_interval_of_a_share_is_that_of_scipy(total, share):
    count = round(share * total)
    known = stats.binomtest(count, total).proportion_ci(0.95, method="wilson")
    assert share_interval(count, total) == pytest.approx((known.low, known.high), abs=1e-9)
