from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats

from harness.analysis.stats.compare import Measurement, compare, holm, permutation, sign_flip


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


@pytest.mark.parametrize("sizes", [(3, 4), (5, 5), (4, 6)])
def test_the_permutation_test_counts_all_arrangements(sizes, random):
    a, b = random.normal(10, 1, sizes[0]), random.normal(11, 1, sizes[1])
    both = np.concatenate((a, b))
    found = []
    for first in combinations(range(both.size), a.size):
        mine = np.isin(np.arange(both.size), first)
        found.append(abs(both[mine].mean() - both[~mine].mean()))
    expected = np.mean(np.array(found) >= abs(a.mean() - b.mean()) * (1 - 1e-12))
    assert permutation(a, b, np.random.default_rng(2)) == pytest.approx(expected)


@pytest.mark.parametrize("size", [6, 9, 12])
def test_the_sign_flip_test_counts_all_flips(size, random):
    values = random.normal(0.3, 1.0, size)
    flips = np.array(list(product((-1.0, 1.0), repeat=size)))
    expected = (np.abs(flips @ values) >= abs(values.sum()) * (1 - 1e-12)).mean()
    assert sign_flip(values, np.random.default_rng(2)) == pytest.approx(expected)


def test_random_sign_flips_agree_with_the_t_test(random):
    values = random.normal(0.3, 1.0, 40)
    assert sign_flip(values, np.random.default_rng(2)) == pytest.approx(stats.ttest_1samp(values, 0.0).pvalue, abs=0.01)


def test_holm_by_hand():
    assert holm([0.01, None, 0.04, 0.03]) == pytest.approx([0.03, None, 0.06, 0.06])


def test_a_plain_difference_is_found_and_measured(random):
    a, b = random.normal(100, 3, 8), random.normal(80, 3, 8)
    found = only(a, b)
    assert found.significant
    assert found.change == pytest.approx(-0.2, abs=0.03)
    assert found.low < -0.2 < found.high < -0.15
    assert f"B is {-found.change:.1%} lower than A" in found.sentence


def test_pairs_find_a_difference_that_drift_hides(random):
    drift = np.linspace(0, 200, 10)
    a = 100 + drift + random.normal(0, 0.5, 10)
    b = 1.05 * (100 + drift) + random.normal(0, 0.5, 10)
    assert not only(a, b).significant
    found = only(a, b, paired=True)
    assert found.paired
    assert found.significant
    assert found.detectable < only(a, b).detectable


def test_equal_pairs_raise_a_false_alarm_in_at_most_5_percent():
    alarms = 0
    for seed in range(100):
        random = np.random.default_rng(seed)
        rows = table(*random.lognormal(0, 0.1, (3, 6))) + table(*random.lognormal(0, 0.1, (3, 6)), metric="throughput")
        alarms += any(c.significant for c in compare(rows, random, paired=True))
    assert alarms / 100 <= 0.05 + 0.03


def pairs_of_tests(count, change, *, spread=0.08, tests=5, metrics=3):
    """Comparisons of tests whose duration differs by `change`; the other metrics do not differ."""
    for seed in range(count):
        random = np.random.default_rng(seed)
        rows = table(*random.lognormal(0, spread, (2, tests)) * [[1], [1 + change]])
        for k in range(metrics):
            rows += table(*random.lognormal(0, spread, (2, tests)), metric=f"other {k}")
        yield compare(rows, random, paired=False, primary="duration")


def test_five_tests_against_five_find_a_fifth_more_in_four_of_five_cases():
    found = [compared[0].significant for compared in pairs_of_tests(100, 0.2, metrics=0)]
    assert np.mean(found) >= 0.8


def test_five_equal_tests_against_five_rarely_differ_in_the_primary_metric_or_in_any_other():
    compared = [*pairs_of_tests(100, 0.0, metrics=3)]
    assert np.mean([each[0].significant for each in compared]) <= 0.05 + 0.03
    assert np.mean([any(c.significant for c in each[1:]) for each in compared]) <= 0.05 + 0.03


def test_the_primary_metric_comes_first_and_is_a_family_of_its_own():
    rows = table([1, 2, 3, 4, 5], [1, 2, 3, 4, 5], metric="other") + table([1, 2, 3, 4, 5], [7, 8, 9, 10, 11])
    first, second = compare(rows, np.random.default_rng(1), paired=False, primary="duration")
    assert (first.metric, first.primary, second.primary) == ("duration", True, False)
    assert first.p == pytest.approx(2 / 252)
    assert compare(rows, np.random.default_rng(1), paired=False)[1].p == pytest.approx(4 / 252)


@pytest.mark.parametrize("tests", [5, 6])
def test_a_change_that_is_said_to_be_detectable_is_found_in_four_of_five_cases(tests):
    said = [compared[0].detectable for compared in pairs_of_tests(40, 0.0, tests=tests, metrics=0)]
    found = [compared[0].significant for compared in pairs_of_tests(100, float(np.mean(said)), tests=tests, metrics=0)]
    assert 0.72 <= np.mean(found) <= 0.95


def test_pairs_say_what_they_can_detect():
    def compared(seed, change):
        random = np.random.default_rng(seed)
        drift, noise = np.linspace(1, 3, 8), random.lognormal(0, 0.05, (2, 8))
        (found,) = compare(table(drift * noise[0], drift * noise[1] * (1 + change)), random, paired=True)
        return found

    said = float(np.mean([compared(seed, 0.0).detectable for seed in range(40)]))
    assert 0.72 <= np.mean([compared(seed, said).significant for seed in range(80)]) <= 0.95


@pytest.mark.parametrize("pairs", [False, True])
def test_so_much_do_single_tests_differ_by_chance_in_19_of_20_cases(pairs):
    """The oracle draws the next two tests."""
    random = np.random.default_rng(5)
    inside = []
    for _ in range(160):
        a, b, (one, other) = random.lognormal(3, 0.1, 6), random.lognormal(3, 0.1, 6), random.lognormal(3, 0.1, 2)
        rows = [Measurement(name, "", str(k), "x", v) for name, arm in (("a", a), ("b", b)) for k, v in enumerate(arm)]
        (found,) = compare(rows, np.random.default_rng(1), paired=pairs)
        inside.append(
            abs(np.log(other / one)) <= np.log1p(found.chance) if pairs else abs(other - one) <= found.chance * a.mean()
        )
    assert 0.9 <= np.mean(inside) <= 0.99


def test_what_no_test_of_that_size_can_find_is_not_called_detectable():
    rows = table([1, 2, 3, 4, 5], [1, 2, 3, 5, 6])
    for k in range(6):
        rows += table([1, 2, 3, 4, 5], [1, 2, 3, 5, 6], metric=f"other {k}")
    first, *others = compare(rows, np.random.default_rng(1), paired=False, primary="duration")
    assert first.detectable > 0
    assert {each.detectable for each in others} == {None}
    assert only([1, 2, 3, 4], [1, 2, 3, 5]).detectable is None


def test_the_interval_covers_the_true_change():
    covered = 0
    for seed in range(200):
        random = np.random.default_rng(seed)
        (found,) = compare(table(random.normal(100, 10, 10), random.normal(110, 10, 10)), random, paired=False)
        covered += found.low <= 0.1 <= found.high
    assert 0.88 <= covered / 200 <= 0.99


def test_a_single_test_gives_numbers_without_significance():
    found = only([100], [150])
    assert found.change == 0.5
    assert (found.low, found.p, found.detectable, found.significant) == (None, None, None, False)
    assert "single test" in found.sentence


def test_too_few_tests_have_no_p_value():
    found = only([1, 2, 3], [11, 12, 13])
    assert found.p is None
    assert "too few" in found.sentence


def test_a_zero_has_no_percentage():
    assert "no change in percent" in only([0, 0], [1, 1]).sentence


def test_of_many_tests_the_p_value_is_that_of_random_arrangements():
    random = np.random.default_rng(3)
    a, b = random.gamma(2.0, 5.0, 150), random.gamma(2.0, 5.0, 120) + 1.0
    arranged = stats.permutation_test(
        (a, b), lambda x, y, axis: np.abs(x.mean(axis=axis) - y.mean(axis=axis)), vectorized=True,
        n_resamples=20_000, alternative="greater", rng=random,
    )  # fmt: skip
    assert permutation(a, b, random) == pytest.approx(arranged.pvalue, abs=0.01)
    assert permutation(np.ones(200), np.ones(200), random) == 1.0
    assert permutation(np.ones(200), np.full(200, 2.0), random) == 0.0
