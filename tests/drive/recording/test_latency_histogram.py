import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.drive.recording.latency_histogram import LatencyHistogram


@given(st.lists(st.floats(2e-5, 1e4), min_size=1, max_size=200), st.sampled_from([0.01, 0.5, 0.99, 1.0]))
def test_a_quantile_is_at_most_five_percent_too_high(seconds, level):
    lags = LatencyHistogram()
    for each in seconds:
        lags.add(each)
    true = np.quantile(seconds, level, method="inverted_cdf")
    assert true * (1 - 1e-9) <= lags.quantile(level) <= true * 1.05 * (1 + 1e-9)


def test_before_the_first_arrival_there_is_no_quantile():
    assert LatencyHistogram().quantile(0.99) is None


def test_an_arrival_without_lag_counts():
    lags = LatencyHistogram()
    for each in (0.0, -0.001, 0.0, 1.0):
        lags.add(each)
    assert lags.quantile(0.75) == pytest.approx(1e-5)


def test_the_worst_lag_is_reset_when_it_is_read():
    lags = LatencyHistogram()
    lags.add(0.2)
    lags.add(0.1)
    assert (lags.take_worst(), lags.take_worst()) == (0.2, 0.0)
