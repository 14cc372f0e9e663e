"""Degradation: by how many seconds each further run takes longer."""

from dataclasses import dataclass
from math import sqrt

import numpy as np

from harness.analysis.timeline import Floats, Timeline, floats

_MIN_POINTS = 10


@dataclass(frozen=True, slots=True)
class Trend:
    """Seconds per run, in order of arrival, with a 95 % interval; `explained` is the share of the variance (R²)."""

    slope: float
    low: float
    high: float
    explained: float

    @property
    def grows(self) -> bool:
        """Whether durations grow significantly, and order explains a good part of their variance."""
        return self.low > 0 and self.explained > 0.3


def degradation(timeline: Timeline) -> Trend | None:
    """The slope of run duration over submission order; none with fewer than ten ended runs.

    Runs in flight are left out: with many of them the slope is underestimated, never overestimated.
    """
    over = timeline.is_over
    seq = floats(timeline.runs, "seq")[over]
    lasted = (floats(timeline.runs, "over_s") - floats(timeline.runs, "due_s"))[over]
    known = np.isfinite(seq) & np.isfinite(lasted)
    return trend(seq[known], lasted[known])


def trend(x: Floats, y: Floats, least: int = _MIN_POINTS) -> Trend | None:
    """Ordinary least squares with Student's interval of its slope; none with fewer than `least` points."""
    if x.size < least or not np.ptp(x):
        return None
    if not np.ptp(y):
        return Trend(0.0, 0.0, 0.0, 0.0)
    from scipy.special import stdtrit

    (of_x, common), (_, of_y) = np.cov(x, y).tolist()
    slope, explained = common / of_x, min(1.0, common**2 / (of_x * of_y))
    half = float(stdtrit(x.size - 2, 0.975)) * sqrt((1 - explained) * of_y / of_x / (x.size - 2))
    return Trend(slope, slope - half, slope + half, explained)
