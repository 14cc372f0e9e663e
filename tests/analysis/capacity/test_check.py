import numpy as np
import pytest

from harness.analysis.capacity.fit import leave_one_out
from harness.analysis.capacity.model import Observation


def test_leave_one_out_on_exact_data_finds_no_error():
    exact = [Observation(runs, nodes, 60 + 300 * runs / nodes) for runs in (40, 100, 200) for nodes in (2, 4, 8, 16)]
    check = leave_one_out(exact, np.random.default_rng(1))
    assert (check.sizes, check.tests, check.coverage) == (12, 12, 1.0)
    assert check.error < 0.03
    assert leave_one_out([Observation(100, 5, 60)] * 3, np.random.default_rng(1)) is None


def test_a_size_unlike_the_others_is_outside_of_its_interval_and_counts_with_each_of_its_tests():
    sizes = [(runs, nodes) for runs in (40, 100, 200) for nodes in (2, 4, 8, 16)]
    known = [Observation(runs, nodes, 60 + 300 * runs / nodes) for runs, nodes in sizes[1:]]
    check = leave_one_out([*known, *[Observation(*sizes[0], 20 * (60 + 6000.0))] * 4], np.random.default_rng(1))
    assert (check.sizes, check.tests) == (12, 15)
    assert check.coverage == 11 / 15
    assert 0.03 < check.error < 0.5, "of the median test, not of the four"
    assert check.sentence == (
        "12 sizes, each predicted from the others: 73% of 15 tests within the 90% interval, "
        f"median error {check.error:.1%}"
    )


def test_the_error_is_relative_to_what_the_test_took():
    """Two sizes, each predicted from the other: twice the work on twice the nodes, that took 4 times as long."""
    check = leave_one_out([Observation(10, 1, 100.0), Observation(20, 2, 400.0)], np.random.default_rng(1))
    low, high = 1 - 100 / 400, 400 / 100 - 1
    assert check.error == pytest.approx((low + high) / 2, rel=0.1)


def test_of_very_many_sizes_only_some_are_predicted(monkeypatch):
    monkeypatch.setattr("harness.analysis.capacity.fit._MOST_SIZES", 4)
    many = [Observation(runs, 1, 10.0 * runs) for runs in range(1, 8)]
    assert leave_one_out(many, np.random.default_rng(1)).sizes == 4
