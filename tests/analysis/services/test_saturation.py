"""How many workers there are, by how many compute at once."""

import numpy as np
import pytest

from harness.analysis.services.saturation import _most, _workers

ALWAYS = np.ones(20_000, dtype=bool)


@pytest.mark.parametrize(("workers", "share"), [(8, 0.1), (8, 0.5), (3, 0.2), (20, 0.3)])
def test_workers_that_compute_for_a_share_of_their_time_are_counted(workers, share):
    computing = np.random.default_rng(7).binomial(workers, share, ALWAYS.size).astype(float)
    assert _workers(computing, np.ones(ALWAYS.size), ALWAYS, 2 * workers) == pytest.approx(workers, rel=0.15)


def test_only_the_time_counts_in_which_there_is_work_for_all():
    random = np.random.default_rng(7)
    busy, idle = random.binomial(8, 0.3, 10_000), random.binomial(8, 0.02, 10_000)
    computing = np.concatenate((busy, idle)).astype(float)
    assert _workers(computing, np.ones(20_000), np.arange(20_000) < 10_000, 16) == pytest.approx(8, abs=1)
    weighted = np.where(np.arange(20_000) < 10_000, 1.0, 1e-9)
    assert _workers(computing, weighted, ALWAYS, 16) == pytest.approx(8, abs=1)


def test_there_are_never_more_than_computed_at_once():
    computing = np.random.default_rng(7).binomial(8, 0.1, ALWAYS.size).astype(float)
    assert _workers(computing, np.ones(ALWAYS.size), ALWAYS, 5) == 5


@pytest.mark.parametrize("computing", [np.tile([0.0, 6.0], 10_000), np.full(20_000, 6.0)])
def test_where_they_do_not_compute_independently_as_many_as_usual_in_busy_times(computing):
    """Together in turns, or always: no binomial distribution has that variance."""
    assert _workers(computing, np.ones(ALWAYS.size), ALWAYS, 9) == 6


def test_there_are_at_least_as_many_as_usually_compute():
    computing = np.repeat([1.0, 2.0, 6.0], [6_000, 6_000, 8_000])
    assert _workers(computing, np.ones(ALWAYS.size), ALWAYS, 9) >= 6
    steady = np.repeat([5.0, 6.0], [16_000, 4_000])  # mean 5.2, variance 0.16: about 5
    assert _workers(steady, np.ones(ALWAYS.size), ALWAYS, 9) == 6


def test_without_work_for_all_or_any_computing_it_is_the_usual_number_and_at_least_one():
    assert _workers(np.full(10, 3.0), np.ones(10), np.zeros(10, dtype=bool), 9) == 3
    assert _workers(np.zeros(10), np.ones(10), np.ones(10, dtype=bool), 1) == 1
    assert _workers(np.empty(0), np.empty(0), np.empty(0, dtype=bool), 1) == 1


@pytest.mark.parametrize(
    ("seconds", "most"), [({1: 100.0, 2: 0.1}, 1), ({1: 100.0, 2: 0.1, 4: 0.3}, 4), ({0: 50.0}, 1), ({3: 1.0}, 3)]
)
def test_so_many_compute_at_once_as_do_so_for_more_than_a_moment(seconds, most):
    assert _most(np.array([*seconds], dtype=float), np.array([*seconds.values()])) == most
