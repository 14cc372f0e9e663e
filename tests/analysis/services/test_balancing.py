"""Waits before workers that share one queue, against closed forms and a queue served step by step."""

from math import factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.services.saturation import balanced_waits


def erlang_c(workers, load):
    """The probability of waiting in M/M/c with an offered load (Erlang, 1917)."""
    full = load**workers / factorial(workers) * workers / (workers - load)
    return full / (sum(load**k / factorial(k) for k in range(workers)) + full)


def served(came, takes, workers):
    """Each goes to the worker whose work ends first, one after the other."""
    ends = [[] for _ in range(workers)]
    waits = []
    for at, long in zip(came, takes, strict=True):
        mine = min(ends, key=lambda each: each[-1] if each else -1.0)
        starts = max(at, mine[-1]) if mine else at
        waits.append(starts - at)
        mine.append(starts + long)
    return waits


@pytest.mark.parametrize(("workers", "load"), [(1, 0.7), (3, 2.4), (10, 6.0)])
def test_the_mean_wait_of_random_arrivals_and_exponential_service_is_erlangs(workers, load):
    random = np.random.default_rng(3)
    came, takes = np.cumsum(random.exponential(1 / load, 200_000)), random.exponential(1.0, 200_000)
    expected = erlang_c(workers, load) / (workers - load)
    assert balanced_waits(came, takes, workers).mean() == pytest.approx(expected, rel=0.08)


def test_a_burst_before_equal_workers_is_served_in_rounds():
    assert balanced_waits(np.zeros(7), np.full(7, 2.0), 3).tolist() == [0, 0, 0, 2, 2, 2, 4]


@given(
    st.lists(st.tuples(st.floats(0, 100), st.floats(0.01, 20)), min_size=1, max_size=40, unique_by=lambda row: row[0]),
    st.integers(1, 6),
)
def test_waits_are_those_of_a_served_queue_in_whatever_order_executions_are_given(rows, workers):
    in_order = sorted(rows)
    expected = dict(zip(in_order, served(*zip(*in_order, strict=True), workers), strict=True))
    came, takes = np.array(rows).T
    assert balanced_waits(came, takes, workers) == pytest.approx([expected[row] for row in rows])


def test_nothing_waits_for_nothing():
    assert balanced_waits(np.empty(0), np.empty(0), 2).size == 0
