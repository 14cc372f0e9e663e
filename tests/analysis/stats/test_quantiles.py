import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from harness.analysis.stats.quantiles import mean_interval, quantile, share_interval, summarize, survival


def test_quantiles_are_the_inverse_of_the_empirical_distribution():
    values = np.random.default_rng(1).lognormal(size=1001)
    for level in (0.01, 0.5, 0.9, 0.99):
        assert quantile(values, level).value == np.quantile(values, level, method="inverted_cdf")


def test_intervals_of_quantiles_have_their_nominal_coverage():
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


@pytest.mark.parametrize(
    ("count", "low", "value", "high"),
    [
        (100, 40.0, 50.0, 61.0),  # 50 - 9.8 and 50 + 9.8 ranks
        (10, 1.0, 5.0, 10.0),  # 5 - 3.1 and 5 + 3.1: the first and the last value just bound it
        (6, None, 3.0, None),
    ],
)
def test_the_ranks_of_a_medians_interval_worked_by_hand(count, low, value, high):
    found = quantile(np.arange(count, 0.0, -1.0), 0.5)
    assert (found.low, found.value, found.high, found.at_least) == (low, value, high, count)


def test_a_summary_leaves_out_what_is_unknown_and_bounds_the_rest():
    summary = summarize(np.array([3.0, np.nan, 1.0, 2.0]))
    assert (summary.count, summary.censored, summary.mean, summary.least, summary.most) == (3, 0, 2.0, 1.0, 3.0)
    open_ = summarize(np.array([3.0, np.nan, 1.0, 2.0]), np.array([False, True, True, True]))
    assert (open_.count, open_.censored, open_.mean, open_.least, open_.most) == (3, 1, None, 1.0, None)


@pytest.mark.parametrize("total", [0, -1])
def test_a_share_of_nothing_has_no_interval(total):
    with pytest.raises(ValueError, match=r"^the total of a share must be above 0$"):
        share_interval(0, total)


def test_survival_is_the_hand_worked_case():
    # Four ends at 6, one censored at 6, ...: the first rows of the 6-MP group of Freireich et al. (1963),
    # worked in every textbook: S(6) = 0.857, S(7) = 0.807, S(10) = 0.753, S(13) = 0.690, S(16) = 0.627.
    times = [6, 6, 6, 6, 7, 9, 10, 10, 11, 13, 16, 17, 19, 20, 22, 23, 25, 32, 32, 34, 35]
    ended = [1, 1, 1, 0, 1, 0, 1, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0]
    curve = survival(np.array(times, dtype=float), np.array(ended, dtype=bool))
    at = dict(zip(curve.times, curve.surviving, strict=True))
    expected = {6: 0.857, 7: 0.807, 10: 0.753, 13: 0.690, 16: 0.627, 22: 0.538, 23: 0.448}
    assert {t: round(at[t], 3) for t in expected} == expected
    deviation = dict(
        zip(curve.times, (at[t] - low for t, low in zip(curve.times, curve.low, strict=True)), strict=True)
    )
    assert round(deviation[10] / 1.96, 3) == 0.096  # Greenwood, from the same tables


@pytest.mark.parametrize(("level", "low", "value", "high"), [(0.25, 6.0, 13.0, 23.0), (0.5, 13.0, 23.0, None)])
def test_a_censored_quantiles_interval_is_where_the_curves_interval_crosses_it(level, low, value, high):
    """The same group: at 13, S = 0.690 with a deviation of 0.107, so that the lower end is the first below 0.5."""
    times = [6, 6, 6, 6, 7, 9, 10, 10, 11, 13, 16, 17, 19, 20, 22, 23, 25, 32, 32, 34, 35]
    ended = [1, 1, 1, 0, 1, 0, 1, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0]
    found = quantile(np.array(times, dtype=float), level, np.array(ended, dtype=bool))
    assert (found.low, found.value, found.high) == (low, value, high)


def test_survival_is_the_product_limit_with_greenwoods_variance():
    random = np.random.default_rng(3)
    values, over = random.exponential(size=300).round(2), random.random(300) < 0.7
    curve, surviving, variance = survival(values, over), 1.0, 0.0
    expected = {}
    for time in np.unique(values):
        at_risk, ended = np.count_nonzero(values >= time), np.count_nonzero((values == time) & over)
        surviving *= 1 - ended / at_risk
        variance += ended / (at_risk * (at_risk - ended)) if at_risk > ended else 0.0
        spread = 1.959964 * surviving * np.sqrt(variance)
        expected[time] = (surviving, max(surviving - spread, 0.0), min(surviving + spread, 1.0))
    found = dict(zip(curve.times, zip(curve.surviving, curve.low, curve.high, strict=True), strict=True))
    assert set(values[over]) <= set(found) <= set(values)
    for time, row in found.items():
        assert row == pytest.approx(expected[time], abs=1e-6)


def test_censored_values_push_the_quantile_up_and_are_never_dropped():
    values = np.arange(1.0, 101.0)
    over = np.ones(100, dtype=bool)
    over[40:60] = False
    found, dropped = quantile(values, 0.5, over), quantile(values[over], 0.5)
    assert found.value > dropped.value
    summary = summarize(values, over)
    assert (summary.count, summary.censored, summary.mean) == (100, 20, None)


def test_a_quantile_beyond_the_last_end_has_only_a_lower_bound():
    over = np.array([True] * 5 + [False] * 5)
    found = quantile(np.arange(1.0, 11.0), 0.9, over)
    assert (found.value, found.at_least) == (None, 10.0)


def test_an_empty_sample_has_no_figures():
    summary = summarize(np.array([np.nan]))
    assert (summary.count, summary.mean, summary.at(0.5).value) == (0, None, None)


@given(total=st.integers(1, 3000), share=st.floats(0, 1))
def test_the_interval_of_a_share_is_wilsons(total, share):
    count, z = round(share * total), 1.959963984540054
    share = count / total
    centre = (share + z * z / (2 * total)) / (1 + z * z / total)
    spread = z / (1 + z * z / total) * np.sqrt(share * (1 - share) / total + (z / (2 * total)) ** 2)
    expected = max(0.0, centre - spread), min(1.0, centre + spread)
    assert share_interval(count, total) == pytest.approx(expected, abs=1e-9)


def test_the_interval_of_a_mean_is_students():
    values = np.array([1.0, 2.0, 4.0, 9.0])
    theirs = stats.t.interval(0.95, 3, values.mean(), stats.sem(values))
    assert mean_interval(values) == pytest.approx(theirs)
    more = stats.t.interval(0.95, 99, values.mean(), values.std(ddof=1) / 10)
    assert mean_interval(values, 100) == pytest.approx(more)


@pytest.mark.parametrize(("values", "count"), [([1.0], None), ([1.0], 9), ([1.0, 2.0], 1), ([], None)])
def test_one_value_says_nothing_of_the_spread(values, count):
    assert mean_interval(np.array(values), count) == (None, None)
    assert mean_interval(np.array([1.0, 2.0]), 2) == mean_interval(np.array([1.0, 2.0]))


def test_a_quantile_of_censored_values_says_what_it_exceeds():
    values, over = np.array([4.0, 1.0, 3.0, 2.0]), np.array([False, True, True, True])
    assert quantile(values, 0.5, over).value == 2.0
    found = quantile(values, 0.9, over)
    assert (found.value, found.at_least, found.level) == (None, 4.0, 0.9)
    assert summarize(values, over).most is None
    assert summarize(values).at(0.9).value == 4.0


def test_levels_of_nothing_are_unknown():
    empty = quantile(np.array([]), 0.5)
    assert (empty.level, empty.value, empty.low, empty.high, empty.at_least) == (0.5, None, None, None, 0.0)
    summary = summarize(np.array([np.nan, np.inf]))
    assert (summary.count, summary.censored, summary.least, summary.most) == (0, 0, None, None)
    assert [each.level for each in summary.quantiles] == [0.5, 0.9, 0.95, 0.99]


def test_two_values_have_a_mean_and_its_interval():
    values = np.array([1.0, 2.0])
    theirs = stats.t.interval(0.95, 1, 1.5, stats.sem(values))
    assert mean_interval(values) == mean_interval(values, 2) == pytest.approx(theirs)


def test_the_quantiles_of_a_summary_know_what_is_censored():
    summary = summarize(np.array([1.0, 2.0, 3.0, 4.0]), np.array([True, False, False, False]))
    assert (summary.at(0.5).value, summary.at(0.5).at_least) == (None, 4.0)
