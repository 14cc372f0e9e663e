"""The knee of latency against load: up to how many runs in flight a run takes as long as ever."""

from dataclasses import dataclass

import numpy as np

from harness.analysis.timeline import Floats, Timeline, floats
from harness.analysis.timeline.curves import active

_BINS = 24
_LEAST_RUNS = 60
_GAIN = 0.5  # of the squared error that one level leaves, the stick must explain so much more
_RISE = 1.3  # from the level to the far end


@dataclass(frozen=True, slots=True)
class Knee:
    """A level, then a rise: `level_s` up to `in_flight` runs at once, from there `slope_s` seconds more for each.

    `explained` is the share of the variance between loads that this explains.
    """

    in_flight: float
    level_s: float
    slope_s: float
    explained: float


def knee(timeline: Timeline) -> Knee | None:
    """The knee of a test's runs, each against the runs that were in flight when it was due; none when there is none."""
    runs = timeline.runs
    due, over = floats(runs, "due_s"), floats(runs, "over_s")
    known = timeline.is_over & np.isfinite(due) & np.isfinite(over)
    if np.count_nonzero(known) < _LEAST_RUNS:
        return None
    due, over = due[known], over[known]
    return bend(*_medians(active(due, over, due), over - due))


def bend(load: Floats, latency: Floats) -> Knee | None:
    """The stick ``level + slope * max(0, load - knee)`` of least squared error; none when a level does as well.

    For a knee that is given, level and slope are a linear regression, so all observed loads are tried as the knee. One
    at either end is no knee: then latency rises all the way, or not at all.
    """
    whole = float(np.square(latency - latency.mean()).sum()) if latency.size else 0.0
    if load.size < 5 or not whole:
        return None
    found: Knee | None = None
    for at in np.unique(load)[1:-2]:
        past = np.maximum(load - at, 0.0)
        slope, level = np.polyfit(past, latency, 1)
        rest = float(np.square(latency - level - slope * past).sum())
        if found is None or 1 - rest / whole > found.explained:
            found = Knee(float(at), float(level), float(slope), 1 - rest / whole)
    if found is None or found.explained < _GAIN or found.slope_s <= 0:
        return None
    far = found.level_s + found.slope_s * (float(load.max()) - found.in_flight)
    return found if far >= _RISE * found.level_s > 0 and found.explained > _straight(load, latency, whole) else None


def _straight(load: Floats, latency: Floats, whole: float) -> float:
    """The share of the variance that a straight line explains, with the stick's advantage of one parameter taken off.

    The stick fits the knee as well; by the adjusted R² it must be better than the line by that much.
    """
    slope, start = np.polyfit(load, latency, 1)
    explained = 1 - float(np.square(latency - start - slope * load).sum()) / whole
    return explained + (1 - explained) * 2 / max(load.size - 3, 1)


def _medians(load: Floats, latency: Floats) -> tuple[Floats, Floats]:
    """Medians of both by equal numbers of runs, in the order of load."""
    order = np.argsort(load, kind="stable")
    parts = np.array_split(order, _BINS)
    return (
        np.array([float(np.median(load[part])) for part in parts]),
        np.array([float(np.median(latency[part])) for part in parts]),
    )
