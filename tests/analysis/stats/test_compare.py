from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats

from harness.analysis.stats.compare import Measurement, _deviations, compare, holm, permutation, sign_flip


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


def test_the_same_tests_are_always_judged_alike(random):
    """Also where not all 48,620 arrangements, or 16,384 flips, are counted."""
    a, b = random.normal(10, 1, 14), random.normal(10.3, 1, 14)
    for rows, paired in ((table(a[:9], b[:9]), False), (table(a, b), True)):
        first, second = (compare(rows, np.random.default_rng(3), paired=paired) for _ in range(2))
        assert first == second


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


@pytest.mark.parametrize(("tests", "spread"), [(5, 0.2), (6, 0.08)])
def test_a_change_that_is_said_to_be_detectable_is_found_in_four_of_five_cases(tests, spread):
    """Each statement is checked by new tests that differ by what it says."""
    random, found = np.random.default_rng(3), []
    for compared in pairs_of_tests(250, 0.0, spread=spread, tests=tests, metrics=0):
        change = 1 + compared[0].detectable
        found.append(permutation(*random.lognormal(0, spread, (2, tests)) * [[1], [change]], random) <= 0.05)
    assert 0.74 <= np.mean(found) <= 0.86


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
    for seed in range(100):
        random = np.random.default_rng(seed)
        (found,) = compare(table(random.normal(100, 10, 10), random.normal(110, 10, 10)), random, paired=False)
        covered += found.low <= 0.1 <= found.high
    assert 0.88 <= covered / 100 <= 0.99


def test_a_single_test_gives_numbers_without_significance():
    found = only([100], [150])
    assert found.change == 0.5
    assert (found.low, found.p, found.detectable, found.significant) == (None, None, None, False)
    assert "single test" in found.sentence


def test_too_few_tests_have_no_p_value():
    found = only([1, 2, 3], [11, 12, 13])
    assert found.p is None
    assert "too few" in found.sentence


def test_three_tests_against_four_are_significant_where_they_are_the_most_extreme_of_35_arrangements():
    assert only([1, 2, 3], [11, 12, 13, 14]).p == pytest.approx(1 / 35)


def test_a_zero_has_no_percentage():
    assert "no change in percent" in only([0, 0], [1, 1]).sentence


def test_the_interval_of_two_tests_worked_by_hand():
    """Of 110 and 130, resampled, the mean is 110, 120, 120 or 130; its deviations are widened by √2."""
    found = only([100, 100], [110, 130])
    assert (found.low, found.high) == pytest.approx((0.2 - 0.1 * 2**0.5, 0.2 + 0.1 * 2**0.5))
    assert (found.before, found.after, found.change, found.counts) == (100, 120, pytest.approx(0.2), (2, 2))


def test_resampled_pairs_stay_together():
    found = only([1, 2, 3, 4, 5, 6], [2, 4, 6, 8, 10, 12], paired=True)
    assert (found.low, found.high) == pytest.approx((1.0, 1.0))
    assert only([1, 2, 3, 4, 5, 6], [2, 4, 6, 8, 10, 12]).high > 1.5


FIVE = [8.0, 9.0, 10.0, 11.0, 12.0]  # a variance of 2.5


def test_chance_is_the_prediction_interval_of_a_difference():
    assert only([9, 10, 11], [9, 10, 11]).chance == pytest.approx(2.776445 * 2**0.5 / 10)  # t of 4 degrees of freedom
    assert only([9, 10, 11], [19, 20, 22, 23]).chance == pytest.approx(2.570582 * (1 + 10 / 3) ** 0.5 / 10)
    assert only([9, 11], [9, 10, 11]).chance is None
    assert only([9, 10, 11], [9, 11]).chance is None
    assert only([-1, 0, 1], [1, 2, 3]).chance is None, "of a mean of 0"


def test_chance_in_pairs_is_that_of_their_ratio():
    ratios = np.exp([0.1, 0.2, 0.3, 0.1, 0.2, 0.3])
    found = only([1, 2, 3, 4, 5, 6], ratios * [1, 2, 3, 4, 5, 6], paired=True)
    assert found.chance == pytest.approx(np.expm1(2.570582 * np.std([0.1, 0.2, 0.3] * 2, ddof=1)))


@pytest.mark.parametrize(("freedom", "level"), [(4, 0.05), (8, 0.03), (30, 0.01)])
def test_a_difference_of_so_many_estimated_standard_errors_is_found_in_four_of_five_cases(freedom, level):
    """One test estimates the standard error, by which the difference is set, and another one looks for it."""
    random, count = np.random.default_rng(5), 200_000
    estimated, again = (np.sqrt(random.chisquare(freedom, count) / freedom) for _ in range(2))
    t = (random.standard_normal(count) + _deviations(freedom, level) * estimated) / again
    assert np.mean(t > stats.t.isf(level / 2, freedom)) == pytest.approx(0.8, abs=0.005)


@pytest.mark.parametrize(
    ("a", "b", "arrangements"),
    [
        (FIVE, [2 * each for each in FIVE], 6 / 126),  # of 126 pairs of mirrored arrangements 6 are within 5 %
        ([8.0, 9.0, 11.0, 12.0], [7.0, 8.0, 9.0, 11.0, 12.0, 13.0], 10 / 210),  # none of 210 mirrors another
    ],
)
def test_what_is_detectable_is_so_many_standard_errors_of_a_test_with_that_change(a, b, arrangements):
    found = only(a, b).detectable
    of_a, of_b = ((np.std(each, ddof=1) / np.mean(each)) ** 2 / len(each) for each in (a, b))
    error = (of_a + (1 + found) ** 2 * of_b) ** 0.5
    assert found == pytest.approx(_deviations(len(a) + len(b) - 2, arrangements) * error)


def test_what_pairs_can_detect_is_of_their_ratios():
    """Of 2^7 flips 6 are within 5 %."""
    logs = np.array([0.1, 0.2] * 4)
    error = np.std(logs, ddof=1) / 8**0.5
    found = only(np.ones(8), np.exp(logs), paired=True).detectable
    assert found == pytest.approx(np.expm1(_deviations(7, 6 / 128) * error))


def test_nothing_is_detectable_where_a_mean_is_0_or_noise_grows_faster_than_the_change():
    assert only([-1, 0, 1, -2, 2], FIVE).detectable is None
    assert only(FIVE, [-1, 0, 1, -2, 2]).detectable is None
    assert only(FIVE, [0.1, 0.1, 0.1, 0.1, 60.0]).detectable is None


@pytest.mark.parametrize(
    ("arms", "pairs"),
    [
        ((range(1, 7), range(2, 8)), True),
        ((range(1, 6), range(2, 7)), False),  # five pairs can't be significant
        ((range(6), range(1, 7)), False),  # a ratio needs values above 0
        ((range(1, 7), range(2, 9)), False),  # one has no partner
    ],
)
def test_tests_side_by_side_are_pairs_where_these_can_be_judged(arms, pairs):
    assert only(*arms, paired=True).paired is pairs
    assert not only(*arms).paired


def test_pairs_are_matched_by_repetition_whatever_their_order():
    rows = [*table([1, 2, 3, 4, 5, 6]), *reversed(table([], [2, 4, 6, 8, 10, 12]))]
    (found,) = compare(rows, np.random.default_rng(1), paired=True)
    assert (found.paired, found.chance) == (True, pytest.approx(0.0, abs=1e-9))


def test_each_further_variant_is_compared_where_the_first_was_measured_too():
    rows = [
        *table([1, 2], [3, 4], [5, 6], metric="x"), *table([], [3, 4], [5, 6], metric="y"),
        *table([1, 2], [], [5, 6], metric="z", scale="t"),
    ]  # fmt: skip
    found = compare(rows, np.random.default_rng(1), paired=False, primary="z")
    assert [(c.metric, c.scale, c.first, c.variant, c.primary) for c in found] == [
        ("z", "t", "A", "C", True), ("x", "s", "A", "B", False), ("x", "s", "A", "C", False),
    ]  # fmt: skip


def test_holm_stops_at_1_and_never_falls():
    assert holm([0.5, 0.6, 0.01]) == pytest.approx([1.0, 1.0, 0.03])
    assert holm([None]) == [None]


@pytest.mark.parametrize(
    ("arms", "sentence"),
    [
        (([100], [150]), "duration at s: B is 50.0% higher than A (single test)."),
        (([0, 0], [1, 1]), "duration at s: no change in percent, as A is 0."),
        (([100, 100, 100], [90, 90, 90]), ("duration at s: B is 10.0% lower than A, not significant "
         "(95% interval -10.0% to -10.0%, too few tests).")),
        (([1] * 5, [2] * 5), "duration at s: B is 100.0% higher than A (95% interval +100.0% to +100.0%, p = 0.0079)."),
        (([1] * 5, [1] * 5), ("duration at s: B is 0.0% lower than A, not significant "
         "(95% interval +0.0% to +0.0%, p = 1; a change of 0% would have been found).")),
    ],
)  # fmt: skip
def test_a_comparison_is_one_sentence(arms, sentence):
    assert only(*arms).sentence == sentence


def test_of_many_tests_the_p_value_is_that_of_random_arrangements():
    random = np.random.default_rng(3)
    a, b = random.gamma(2.0, 5.0, 150), random.gamma(2.0, 5.0, 120) + 1.0
    arranged = stats.permutation_test(
        (a, b), lambda x, y, axis: np.abs(x.mean(axis=axis) - y.mean(axis=axis)), vectorized=True,
        n_resamples=20_000, alternative="greater", rng=random,
    )  # fmt: skip
    assert permutation(a, b, random) == pytest.approx(arranged.pvalue, abs=0.01)
    assert permutation(a, a + 1.0, random) == pytest.approx(stats.ttest_ind(a, a + 1.0).pvalue)
    assert permutation(np.ones(200), np.ones(200), random) == 1.0
    assert permutation(np.ones(200), np.full(200, 2.0), random) == 0.0
