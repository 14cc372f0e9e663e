"""Since when something takes longer than before."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu

from harness.analysis.services.onset import NONE, onset


def lognormal(number, seed=1):
    return np.random.default_rng(seed).lognormal(0.0, 0.55, number)


def changed(number, at, factor, seed=1):
    values = lognormal(number, seed)
    values[at:] *= factor
    return values


@pytest.mark.parametrize("at", [4, 30, 100, 196])
def test_a_rise_is_found_near_the_ends_too(at):
    found = onset(changed(200, at, 8.0))
    assert abs(found.at - at) <= 0.1 * min(at, 200 - at)
    assert found.factor == pytest.approx(8.0, rel=0.7)
    assert found.p < 1e-3


def test_a_fall_is_none():
    assert onset(changed(200, 100, 1 / 8)).p == 1


def test_values_that_do_not_change_rarely_look_as_if_they_did():
    p = np.array([onset(lognormal(60, seed)).p for seed in range(300)])
    assert (p < 0.05).mean() <= 0.05


def test_half_of_the_values_decide_as_a_single_test_does_times_the_number_of_splits():
    values = np.concatenate((np.arange(1.0, 9.0), np.arange(11.0, 19.0)))
    found = onset(values)
    assert (found.at, found.factor) == (8, 14.5 / 4.5)
    assert found.p == pytest.approx(mannwhitneyu(values[:8], values[8:], alternative="less").pvalue * 11)


@pytest.mark.parametrize(("number", "p"), [(5, 1.0), (6, 1 / 20), (7, 2 / 35)])
def test_few_values_show_little(number, p):
    """Six values in three and three: one of 20 orders has the three smallest first."""
    found = onset(np.arange(1.0, number + 1))
    assert found.p == pytest.approx(p)
    assert (found == NONE) is (p == 1)


@given(st.lists(st.floats(1e-3, 1e3), min_size=6, max_size=80), st.integers(-3, 3))
def test_the_unit_does_not_matter(values, power):
    values, unit = np.array(values), 2.0**power  # without rounding, which may make two values equal
    found, scaled = onset(values), onset(values * unit)
    assert (scaled.at, scaled.p) == (found.at, pytest.approx(found.p))
    assert scaled.factor == pytest.approx(found.factor)


def test_of_many_values_evenly_chosen_ones_are_compared_and_the_place_is_of_all():
    found = onset(changed(50_000, 30_000, 4.0))
    assert found.at == pytest.approx(30_000, rel=0.2)
    assert found.factor == pytest.approx(4.0, rel=0.3)
