import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.timeline.curves import active, integral, mean_active, merged, peak

INTERVALS = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 30)), max_size=30)


def arrays(intervals):
    starts = np.array([float(a) for a, _ in intervals])
    return starts, starts + np.array([float(b) for _, b in intervals])


@given(INTERVALS)
def test_active_agrees_with_a_loop(intervals):
    starts, ends = arrays(intervals)
    at = np.arange(0.0, 90.0, 0.5)
    expected = [sum(a <= t < b for a, b in zip(starts, ends, strict=True)) for t in at]
    assert active(starts, ends, at).tolist() == expected


@given(INTERVALS)
def test_the_integral_is_the_time_spent_in_all_intervals(intervals):
    starts, ends = arrays(intervals)
    at = np.array([0.0, 17.0, 80.0])
    expected = [sum(min(b, t) - min(a, t) for a, b in zip(starts, ends, strict=True)) for t in at]
    assert integral(starts, ends, at) == pytest.approx(expected)


def test_means_are_of_each_window_and_open_intervals_go_on():
    starts, ends = np.array([0.0, 5.0]), np.array([10.0, np.nan])
    assert mean_active(starts, ends, np.array([0.0, 10.0, 20.0])) == pytest.approx([1.5, 1.0])


@given(INTERVALS)
def test_merged_intervals_are_disjoint_and_cover_the_same(intervals):
    starts, ends = arrays(intervals)
    low, high = merged(starts, ends)
    assert (low[1:] > high[:-1]).all()
    at = np.arange(0.25, 90.0, 0.5)
    assert (active(low, high, at) == (active(starts, ends, at) > 0)).all()


@given(INTERVALS)
def test_the_peak_is_reached(intervals):
    starts, ends = arrays(intervals)
    assert peak(starts, ends) == max(
        (sum(a <= t < b for a, b in zip(starts, ends, strict=True)) for t in starts), default=0
    )
