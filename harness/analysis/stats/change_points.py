"""Change points: after which value of a series its level differs.

Binary segmentation with a permutation test of the largest standardised difference of means (the statistic: Hawkins,
"Testing a sequence of observations for a shift in location", 1977; the test as in Matteson and James, 2014). A change
that is undone later is found while it lasts, and may be missed afterwards.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.analysis.timeline import Floats

_LEAST = 3  # values on each side
_PERMUTATIONS = 1999


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """The first value of the new level (its place in the series), the medians on both sides, and the p value."""

    first: int
    before: float
    after: float
    p: float


def change_points(values: Sequence[float], random: np.random.Generator, level: float = 0.01) -> list[ChangePoint]:
    """The change points of a series, in order; `level` bounds the chance of any in a series without a change."""
    series = np.asarray(values, dtype=float)
    found = sorted(_split(series, 0, random, level))
    edges = [0, *(first for first, _ in found), series.size]
    return [
        ChangePoint(
            first, float(np.median(series[edges[k] : first])), float(np.median(series[first : edges[k + 2]])), p
        )
        for k, (first, p) in enumerate(found)
    ]


def _split(series: Floats, offset: int, random: np.random.Generator, level: float) -> list[tuple[int, float]]:
    if series.size < 2 * _LEAST or not np.ptp(series):
        return []
    statistics = _statistics(series[np.newaxis])[0]
    shuffled = random.permuted(np.tile(series, (_PERMUTATIONS, 1)), axis=1)
    reached = _statistics(shuffled).max(axis=1) >= statistics.max() * (1 - 1e-12)
    p = (1 + int(reached.sum())) / (1 + _PERMUTATIONS)
    if p > level:
        return []
    cut = _LEAST + int(statistics.argmax())
    left, right = (_split(part, offset + at, random, level) for part, at in ((series[:cut], 0), (series[cut:], cut)))
    return [*left, (offset + cut, p), *right]


def _statistics(rows: Floats) -> Floats:
    """Of each row and cut: the squared difference of the means on both sides, in units of its variance."""
    count = rows.shape[1]
    cuts = np.arange(_LEAST, count - _LEAST + 1)
    sums = np.cumsum(rows - rows.mean(axis=1, keepdims=True), axis=1)[:, cuts - 1]
    scaled: Floats = sums**2 * count / (cuts * (count - cuts))
    return scaled
