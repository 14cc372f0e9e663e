import itertools

import numpy as np
import pytest

from harness.analysis.stats.change_points import change_points


def drawn(seed, *levels, nights=15, spread=0.05):
    random = np.random.default_rng(seed)
    return [level * random.lognormal(0, spread) for level in levels for _ in range(nights)]


def points(seed, *levels, **how):
    return change_points(drawn(seed, *levels, **how), np.random.default_rng(0))


def test_a_series_without_a_change_is_rarely_an_alarm():
    assert sum(bool(points(seed, 100.0, nights=30)) for seed in range(100)) <= 4  # 1 % expected; P(5 or more) < 0.4 %


def test_the_night_of_a_change_is_found():
    found = [points(seed, 100.0, 120.0) for seed in range(40)]
    assert sum(len(each) == 1 and abs(each[0].first - 15) <= 1 for each in found) >= 36
    assert found[0][0].before == pytest.approx(100, rel=0.05)
    assert found[0][0].after == pytest.approx(120, rel=0.05)


def test_a_change_that_is_undone_later_is_found_with_its_end():
    series = np.random.default_rng(4).normal(10.0, 0.4, 60)
    series[40:46] += 2.0
    first, second = change_points(series, np.random.default_rng(1))
    assert (first.first, second.first) == (40, 46)
    assert first.before == pytest.approx(10.0, abs=0.3)
    assert first.after == second.before == pytest.approx(12.0, abs=0.5)
    assert second.after == pytest.approx(10.0, abs=0.3)


def test_two_changes_are_told_apart():
    assert [round(each.first / 15) for each in points(1, 100.0, 140.0, 200.0)] == [1, 2]


@pytest.mark.parametrize("values", [[], [1.0] * 30, [1.0, 2.0, 3.0, 4.0, 5.0]])
def test_too_few_or_equal_values_show_no_change(values):
    assert change_points(values, np.random.default_rng(0)) == []


def test_a_step_without_noise_is_found_where_it_is_with_its_p_value():
    """Two of the 184,756 orders of ten and ten values are as extreme, so that hardly one of 1,999 is."""
    (found,) = change_points([1.0] * 10 + [2.0] * 10, np.random.default_rng(1))
    assert (found.first, found.before, found.after, found.p) == (10, 1.0, 2.0, 1 / 2000)


def test_both_sides_have_three_values_or_more():
    random = np.random.default_rng(1)
    series = [*random.normal(0, 1e-3, 27), 5.0, 5.0, 5.0]
    assert [each.first for each in change_points(series, random)] == [27]
    begin, *_ = [each.first for each in change_points([5.0, 5.0, 5.0, *random.normal(0, 1e-3, 27)], random)]
    assert begin == 3
    for others in (1, 2):
        noise = random.normal(0, 1e-3, 30 - others)
        assert all(3 <= each.first <= 27 for each in change_points([*noise, *[5.0] * others], random))
        assert all(3 <= each.first <= 27 for each in change_points([*[5.0] * others, *noise], random))


@pytest.mark.parametrize("first", [3, 24])
def test_three_values_between_an_end_and_a_change_that_is_undone_are_enough(first):
    series = np.random.default_rng(1).normal(0, 1e-3, 30)
    series[first : first + 3] += 5.0
    assert [each.first for each in change_points(series, np.random.default_rng(1))] == [first, first + 3]


def test_the_same_series_is_always_judged_alike():
    """By random permutations: at this level each part has change points, with p values above the least."""
    values = drawn(3, 100.0, 104.0, 100.0, 103.0, nights=12)
    once, again = (change_points(values, np.random.default_rng(0), level=0.9) for _ in range(2))
    assert once == again
    assert max(each.p for each in once) > 0.01


def test_the_level_of_a_change_is_the_median_of_all_its_values():
    (found,) = change_points([*[1.0, 2.0] * 5, *[20.0, 30.0, 40.0] * 3, 20.0], np.random.default_rng(1))
    assert (found.before, found.after) == (1.5, 30.0)


def test_a_stricter_level_finds_less():
    values = drawn(3, 100.0, 104.0, nights=12)
    random = np.random.default_rng
    found = change_points(values, random(0), level=1.0)
    assert found
    assert change_points(values, random(0), level=found[0].p / 2) == []
    assert change_points(values, random(0), level=found[0].p)


def test_levels_are_medians_between_the_changes():
    values = [1.0] * 9 + [9.0] + [20.0] * 9 + [90.0] + [50.0] * 10
    found = change_points(values, np.random.default_rng(2))
    assert (found[0].before, found[-1].after) == (1.0, 50.0)
    assert all(a.after == b.before for a, b in itertools.pairwise(found))
