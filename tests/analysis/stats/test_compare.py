import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from harness.analysis.stats.compare import Measurement, compare, holm, mann_whitney, sign_flip


@pytest.fixture
def random() -> np.random.Generator:
    """The same draws for every test, whichever ran before."""
    return np.random.default_rng(5)


def table(*arms, metric="duration", scale="s"):
    return [
        Measurement(name, scale, str(k), metric, float(value))
        for name, values in zip("ABCDEF", arms, strict=False)
        for k, value in enumerate(values)
    ]


def only(*arms, paired=False):
    (found,) = compare(table(*arms), np.random.default_rng(1), paired=paired)
    return found


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.integers(0, 30), min_size=2, max_size=12),
    st.lists(st.integers(0, 30), min_size=2, max_size=12),
)
def test_the_rank_test_is_scipys(a, b):
    a, b = np.array(a, dtype=float), np.array(b, dtype=float)
    ties = np.unique(np.concatenate((a, b))).size < a.size + b.size
    if np.unique(np.concatenate((a, b))).size == 1:
        assert mann_whitney(a, b) == 1.0
        return
    method = "asymptotic" if ties else "exact"
    assert mann_whitney(a, b) == pytest.approx(stats.mannwhitneyu(a, b, method=method).pvalue, abs=1e-9)


@pytest.mark.parametrize("size", [6, 9, 40])
def test_the_sign_flip_test_is_scipys(size, random):
    values = random.normal(0.3, 1.0, size)
    oracle = stats.permutation_test(
        (values,), np.sum, permutation_type="samples", alternative="two-sided", n_resamples=20_000, random_state=1,
    ) if size <= 12 else stats.ttest_1samp(values, 0.0)  # fmt: skip
    assert sign_flip(values, np.random.default_rng(2)) == pytest.approx(oracle.pvalue, abs=0.01)


def test_holm_by_hand():
    assert holm([0.01, None, 0.04, 0.03]) == pytest.approx([0.03, None, 0.06, 0.06])


def test_a_plain_difference_is_found_and_measured(random):
    a, b = random.normal(100, 3, 8), random.normal(80, 3, 8)
    found = only(a, b)
    assert found.significant
    assert found.change == pytest.approx(-0.2, abs=0.03)
    assert found.low < -0.2 < found.high < -0.15
    assert f"B is {-found.change:.1%} lower than A" in found.sentence


def test_pairs_find_what_drift_hides(random):
    drift = np.linspace(0, 200, 10)
    a = 100 + drift + random.normal(0, 0.5, 10)
    b = 1.05 * (100 + drift) + random.normal(0, 0.5, 10)
    assert not only(a, b).significant
    found = only(a, b, paired=True)
    assert found.paired
    assert found.significant
    assert found.detectable < only(a, b).detectable


def test_equal_variants_raise_a_false_alarm_in_at_most_5_percent():
    alarms = 0
    for seed in range(300):
        random = np.random.default_rng(seed)
        arms = random.lognormal(0, 0.1, (3, 6))
        rows = table(*arms) + table(*random.lognormal(0, 0.1, (3, 6)), metric="throughput")
        alarms += any(c.significant for c in compare(rows, random, paired=seed % 2 == 0))
    assert alarms / 300 <= 0.05


def test_the_interval_covers_the_true_change():
    covered = 0
    for seed in range(200):
        random = np.random.default_rng(seed)
        (found,) = compare(table(random.normal(100, 10, 10), random.normal(110, 10, 10)), random, paired=False)
        covered += found.low <= 0.1 <= found.high
    assert 0.88 <= covered / 200 <= 0.99


def test_what_is_detectable_is_detected_four_times_in_five(random):
    found = only(random.normal(100, 5, 400), random.normal(100, 5, 400))
    assert found.detectable == pytest.approx(2.802 * 5 * np.sqrt(2 / 400) / 100, rel=0.1)
    hits = 0
    for seed in range(200):
        random = np.random.default_rng(seed)
        change = 2.802 * 5 * np.sqrt(2 / 20) / 100
        a, b = random.normal(100, 5, 20), random.normal(100 * (1 + change), 5, 20)
        hits += mann_whitney(a, b) <= 0.05
    assert hits / 200 == pytest.approx(0.8, abs=0.1)


def test_one_test_gives_numbers_and_proves_nothing():
    found = only([100], [150])
    assert found.change == 0.5
    assert (found.low, found.p, found.detectable, found.significant) == (None, None, None, False)
    assert "single test" in found.sentence


def test_too_few_tests_can_not_tell():
    found = only([1, 2, 3], [11, 12, 13])
    assert found.p is None
    assert "too few" in found.sentence


def test_a_zero_has_no_percentage():
    assert "no change in percent" in only([0, 0], [1, 1]).sentence
