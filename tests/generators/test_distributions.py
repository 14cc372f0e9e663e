"""Marginals against their textbook distributions: Kolmogorov's distance at n = 20,000, far tails of its own null left out.

The bound 1.95 / sqrt(n) is exceeded by chance once in a thousand; the seeds are fixed, so a failure is a change.
"""

import math

import numpy as np
import pytest
from scipy import stats

from tests.support.drawing import drawn

N = 20_000
BOUND = 1.95 / math.sqrt(N)


def values(definition, n=N):
    return np.array(drawn({"x": definition}, n)["x"])


@pytest.mark.parametrize(
    ("definition", "oracle"),
    [
        ({"uniform": [-2, 3]}, stats.uniform(-2, 5)),
        ({"normal": [10, 2]}, stats.norm(10, 2)),
        ({"normal": [10, 2], "min": 9, "max": 14}, stats.truncnorm(-0.5, 2, 10, 2)),
        ({"lognormal": [12.5, 0.8]}, stats.lognorm(0.8, scale=12.5)),
        ({"quantiles": [0, 1, 10]}, stats.rv_histogram(([0.5, 0.5], [0, 1, 10]), density=False)),
    ],
    ids=["uniform", "normal", "truncated", "lognormal", "quantiles"],
)
def test_continuous_marginals(definition, oracle):
    assert stats.kstest(values(definition), oracle.cdf).statistic < BOUND


def test_a_truncated_lognormal_is_not_clipped_to_its_bounds():
    found = values({"lognormal": [0.01, 0.6], "min": 0.005, "max": 0.05})
    assert 0.005 <= found.min() < found.max() <= 0.05
    assert len(np.unique(found)) == N
    base = stats.lognorm(0.6, scale=0.01)
    low, high = base.cdf(0.005), base.cdf(0.05)
    assert stats.kstest(found, lambda x: (base.cdf(x) - low) / (high - low)).statistic < BOUND


@pytest.mark.parametrize(
    ("definition", "shares"),
    [
        ({"choice": {"1": 6, "2": 3, "3": 1}}, {"1": 0.6, "2": 0.3, "3": 0.1}),
        ({"choice": [4, 5]}, {4: 0.5, 5: 0.5}),
        ({"boolean": 0.2}, {True: 0.2, False: 0.8}),
        ({"zipf": 3, "exponent": 1.0}, {1: 6 / 11, 2: 3 / 11, 3: 2 / 11}),
        ({"zipf": 4, "exponent": 0}, dict.fromkeys(range(1, 5), 0.25)),
    ],
)
def test_shares_of_discrete_values(definition, shares):
    found = list(drawn({"x": definition}, N)["x"])
    counts = [found.count(value) for value in shares]
    assert sum(counts) == N
    assert stats.chisquare(counts, [share * N for share in shares.values()]).pvalue > 0.001


def test_business_hours_are_hit_evenly():
    definition = {"datetime": ["2025-03-01", "2025-03-31"], "step": "1h", "business_hours": True}
    found = drawn({"x": definition}, N)["x"]
    counts = found.value_counts().to_list()
    assert len(counts) == 21 * 10  # weekdays of March 2025, ten hours each
    assert stats.chisquare(counts).pvalue > 0.001


@pytest.mark.parametrize("rank", [-0.95, -0.5, 0.0, 0.3, 0.8, 1.0])
@pytest.mark.parametrize(
    ("left", "right"),
    [
        ({"normal": [0, 1]}, {"lognormal": [1, 2]}),
        ({"uniform": [0, 1]}, {"integer": [1, 1000]}),
        ({"lognormal": [5, 1]}, {"datetime": ["2025-01-01", "2025-12-31"]}),
    ],
    ids=["normal-lognormal", "uniform-integer", "lognormal-datetime"],
)
def test_rank_correlation_is_met_within_0_03(left, right, rank):
    found = drawn({"a": left, "b": {**right, "correlation": {"with": "a", "rank": rank}}}, 10_000)
    assert stats.spearmanr(found["a"], found["b"].rank()).statistic == pytest.approx(rank, abs=0.03)


def test_a_correlated_field_keeps_its_marginal():
    fields = {"a": {"normal": [0, 1]}, "b": {"lognormal": [1, 0.5], "correlation": {"with": "a", "rank": 0.7}}}
    assert stats.kstest(np.array(drawn(fields, N)["b"]), stats.lognorm(0.5).cdf).statistic < BOUND


def test_fields_without_correlation_are_independent():
    found = drawn({"a": {"normal": [0, 1]}, "b": {"normal": [0, 1]}}, 10_000)
    assert abs(stats.spearmanr(found["a"], found["b"]).statistic) < 0.03
