"""Since when something takes longer than before: the split of a sequence at which its later part differs most.

Each split is a test of two samples by their ranks (Mann and Whitney, 1947). The most unlikely one counts, with its
probability times the number of splits (Bonferroni). Pettitt (1979) takes the largest |U - mean| of all splits instead,
which hardly finds changes near the ends.
"""

from dataclasses import dataclass

import numpy as np

from harness.analysis.timeline import Floats, evenly

_BEFORE = 3  # values, at least: of 50, they are the three smallest in 1 of 20,000 orders
_SPLITS = 16  # at most, from either end
_MAX_VALUES = 1_000  # values that are compared, evenly chosen; of more, the probability may be too small for a float


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
    from scipy.stats import mannwhitneyu

    kept = evenly(values.size, _MAX_VALUES)
    values, number = values[kept], kept.size
    if number < 2 * _BEFORE:
        return NONE
    splits = np.geomspace(_BEFORE, max(number / 2, _BEFORE), _SPLITS).astype(np.int64)
    splits = np.unique(np.concatenate((splits, number - splits)))
    p = [float(mannwhitneyu(values[:at], values[at:], alternative="less").pvalue) for at in splits]
    at = int(splits[np.argmin(p)])
    factor = float(np.median(values[at:])) / max(float(np.median(values[:at])), 1e-9)
    return Onset(int(kept[at]), factor, min(1.0, min(p) * splits.size))
