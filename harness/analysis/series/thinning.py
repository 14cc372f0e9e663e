"""Long series with fewer points, extremes kept."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from harness.analysis.timeline import Floats

MOST_POINTS = 1500


@dataclass(frozen=True, slots=True, eq=False)
class Points:
    """A series of at most `MOST_POINTS` points; x and y have the same length and are finite."""

    x: Floats
    y: Floats


def thinned(x: Floats, y: Floats, most: int = MOST_POINTS) -> Points:
    """Keep the minimum and maximum of each of `most / 2` equal sections, in order; drop points that are not finite."""
    known = np.isfinite(x) & np.isfinite(y)
    x, y = x[known], y[known]
    if x.size <= most:
        return Points(x, y)
    bounds = np.linspace(0, x.size, most // 2 + 1).astype(int)
    keep: set[int] = {0, x.size - 1}
    for low, high in pairwise(bounds.tolist()):
        section = y[low:high]
        keep |= {low + int(section.argmin()), low + int(section.argmax())}
    chosen = np.array(sorted(keep))
    return Points(x[chosen], y[chosen])
