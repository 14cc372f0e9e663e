"""Change points: after which value of a series its level differs.

Circular binary segmentation (Olshen et al., "Circular binary segmentation for the analysis of array-based DNA copy
number data", 2004): a stretch of the series is compared with all the rest of it, so that a change that is undone later
is found as well, with a permutation test of the largest standardised difference of means.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np

from harness.analysis.timeline import Floats, Ints

_MIN_SIDE = 3  # values on each side
_PERMUTATIONS = 1999
_AT_ONCE = 2**21  # statistics in memory


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
    from scipy.stats import permutation_test

    if series.size < 2 * _MIN_SIDE or not np.ptp(series):
        return []
    begin, end = _stretches(series.size)
    tested = permutation_test(
        (series,),
        lambda rows, axis: _statistics(np.atleast_2d(rows), begin, end).max(axis=axis),
        permutation_type="pairings", vectorized=True, n_resamples=_PERMUTATIONS, batch=max(1, _AT_ONCE // begin.size),
        alternative="greater", rng=random,
    )  # fmt: skip
    p = float(np.max(tested.pvalue))
    if p > level:
        return []
    best = int(_statistics(series[np.newaxis], begin, end)[0].argmax())
    cuts = [int(cut) for cut in (begin[best], end[best]) if 0 < cut < series.size]
    edges = [0, *cuts, series.size]
    parts = (_split(series[low:high], offset + low, random, level) for low, high in pairwise(edges))
    return [*((offset + cut, p) for cut in cuts), *chain.from_iterable(parts)]


def _stretches(count: int) -> tuple[Ints, Ints]:
    """Where stretches begin and end that leave enough values inside, and outside on each side that has any."""
    begin, end = np.triu_indices(count + 1, _MIN_SIDE)
    kept = ((begin == 0) | (begin >= _MIN_SIDE)) & ((end == count) | (count - end >= _MIN_SIDE)) & (end - begin < count)
    return begin[kept], end[kept]


def _statistics(rows: Floats, begin: Ints, end: Ints) -> Floats:
    """Of each row and stretch: the squared difference of the means inside and outside, in units of its variance."""
    count = rows.shape[1]
    sums = np.zeros((rows.shape[0], count + 1))
    np.cumsum(rows - rows.mean(axis=1, keepdims=True), axis=1, out=sums[:, 1:])
    length = end - begin
    scaled: Floats = (sums[:, end] - sums[:, begin]) ** 2 * count / (length * (count - length))
    return scaled
