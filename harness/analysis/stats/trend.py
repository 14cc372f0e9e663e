"""Degradation: by how many seconds each further run takes longer."""

from dataclasses import dataclass

import numpy as np

from harness.analysis.timeline import Floats, Timeline, floats

_LEAST = 10


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


def trend(x: Floats, y: Floats, least: int = _LEAST) -> Trend | None:
    """Ordinary least squares with Student's interval of its slope; none with fewer than `least` points."""
    from scipy.stats import linregress, t

    if x.size < least or not np.ptp(x):
        return None
    if not np.ptp(y):
        return Trend(0.0, 0.0, 0.0, 0.0)
    line = linregress(x, y)
    half = float(t.ppf(0.975, x.size - 2)) * float(line.stderr)
    return Trend(float(line.slope), float(line.slope) - half, float(line.slope) + half, float(line.rvalue) ** 2)
