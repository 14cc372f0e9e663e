"""Since when something takes longer than before: the split of a sequence at which its later part differs most.

Each split is a test of two samples by their ranks (Mann and Whitney, 1947): with k of n values before it, whose ranks
sum up to R, U = R - k(k + 1)/2 has mean k(n - k)/2 and variance k(n - k)(n + 1)/12 if nothing changes. The split with
the largest |U - mean| for its variance counts, with its probability times the number of splits (Bonferroni). Pettitt
(1979) takes the largest |U - mean| itself, which hardly finds changes near the ends.
"""

from dataclasses import dataclass

import numpy as np

from harness.analysis.timeline import Floats

_BEFORE = 3  # values, at least: of 50, they are the three smallest in 1 of 20,000 orders
_SPLITS = 64  # at most


@dataclass(frozen=True, slots=True)
class Onset:
    """Where a sequence changed.

    Attributes:
        at: index of the first value of the later part.
        factor: its median over that of the earlier part.
        p: probability of a later part that is larger by as much, in a sequence that does not change.
    """

    at: int
    factor: float
    p: float


NONE = Onset(0, 1.0, 1.0)


def onset(values: Floats) -> Onset:
    """The most likely rise of positive `values`, shape (n,), in order; `NONE` where there are too few for any."""
    from scipy.stats import mannwhitneyu, rankdata

    number = values.size
    if number < 2 * _BEFORE:
        return NONE
    splits = np.geomspace(_BEFORE, number - _BEFORE, _SPLITS).round().astype(np.int64)
    before = np.unique(np.concatenate((splits, number - splits)))  # denser near both ends
    ranks = np.cumsum(rankdata(values))[before - 1]
    below = before * (number + 1) / 2 - ranks
    at = int(before[np.argmax(below / np.sqrt(before * (number - before)))])
    earlier, later = values[:at], values[at:]
    p = float(mannwhitneyu(earlier, later, alternative="less").pvalue)
    factor = float(np.median(later)) / max(float(np.median(earlier)), 1e-9)
    return Onset(at, factor, min(1.0, p * before.size))
