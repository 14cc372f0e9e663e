"""Counts of active intervals over time, from their starts and ends, in one sort."""

import numpy as np

from harness.analysis.timeline.columns import Floats, blocks


def integral(starts: Floats, ends: Floats, at: Floats, rate: Floats | None = None) -> Floats:
    """Active-seconds up to each instant of `at` (ascending): the integral of the number of intervals that are open.

    With a `rate` per interval it is the integral of the open ones' rates. An interval whose end is NaN is open. One
    that ends before it starts counts negatively, which keeps sums right.
    """
    return _ramp(starts, at, rate) - _ramp(ends, at, rate)


def mean_active(starts: Floats, ends: Floats, edges: Floats) -> Floats:
    """The mean number active within each window between `edges`; shape (len(edges) - 1,)."""
    return np.asarray(np.diff(integral(starts, ends, edges)) / np.diff(edges), dtype=np.float64)


def active(starts: Floats, ends: Floats, at: Floats) -> Floats:
    """The number active at each instant; intervals are closed at the start and open at the end."""
    begun = np.searchsorted(_sorted(starts), at, side="right")
    over = np.searchsorted(_sorted(ends), at, side="right")
    return np.asarray(begun - over, dtype=np.float64)


def peak(starts: Floats, ends: Floats) -> int:
    """The largest number active at once."""
    at = _sorted(starts)
    return int(active(starts, ends, at).max()) if at.size else 0


def merged(starts: Floats, ends: Floats) -> tuple[Floats, Floats]:
    """The union of intervals as disjoint ones, ascending; none may end before it starts."""
    if not starts.size:
        return starts, ends
    # Nothing is open where as many have ended as have started, whichever they are.
    starts = np.sort(starts)
    ends = np.sort(ends)
    apart = starts[1:] > ends[:-1]
    return starts[np.concatenate(([True], apart))], ends[np.concatenate((apart, [True]))]


def _ramp(points: Floats, at: Floats, rate: Floats | None = None) -> Floats:
    """The sum of rate · (at - p) over all points p before each instant; the rate is 1 where none is given.

    Points are looked up among the instants: with few instants and many points that is cheaper than sorting points.
    """
    before, sums = np.zeros(at.size), np.zeros(at.size)
    for here in blocks(points.size):
        part, of_part = points[here], None if rate is None else rate[here]
        finite = np.isfinite(part)
        part, of_part = part[finite], None if of_part is None else of_part[finite]
        place = np.searchsorted(at, part)
        before += np.bincount(place, of_part, at.size)[: at.size]
        sums += np.bincount(place, part if of_part is None else of_part * part, at.size)[: at.size]
    return np.asarray(np.cumsum(before) * at - np.cumsum(sums), dtype=np.float64)


def _sorted(points: Floats) -> Floats:
    return np.sort(points[np.isfinite(points)])
