"""The knee of latency against load: the number of runs in flight from which runs take longer."""

from dataclasses import dataclass

import numpy as np

from harness.analysis.timeline import Floats, Timeline, active, floats

_BINS = 24
_MIN_RUNS = 60
_MIN_EXPLAINED = 0.5  # share of the variance that the broken line must explain
_MIN_RISE = 1.3  # from the level to the highest load


@dataclass(frozen=True, slots=True)
class Knee:
    """A level, then a rise: `level_s` up to `in_flight` runs in flight, then `slope_s` seconds more per further run.

    `explained` is the share of the variance between loads that this explains.
    """

    in_flight: float
    level_s: float
    slope_s: float
    explained: float


def knee(timeline: Timeline) -> Knee | None:
    """The knee of a test's run durations against the runs in flight when each was due; none when there is no knee."""
    runs = timeline.runs
    due, over = floats(runs, "due_s"), floats(runs, "over_s")
    known = timeline.is_over & np.isfinite(due) & np.isfinite(over)
    if np.count_nonzero(known) < _MIN_RUNS:
        return None
    due, over = due[known], over[known]
    return bend(*_medians(active(due, over, due), over - due))


def bend(load: Floats, latency: Floats) -> Knee | None:
    """The least-squares broken line ``level + slope * max(0, load - knee)``; none when a constant does as well.

    Given the knee, level and slope are a linear regression, so every observed load is tried as the knee. One at either
    end is no knee: latency then rises over the whole range, or not at all.
    """
    if load.size < 5 or not (whole := float(np.square(latency - latency.mean()).sum())):
        return None
    found: Knee | None = None
    for at in np.unique(load)[1:-2]:
        past = np.maximum(load - at, 0.0)
        slope, level = np.polyfit(past, latency, 1)
        rest = float(np.square(latency - level - slope * past).sum())
        if found is None or 1 - rest / whole > found.explained:
            found = Knee(float(at), float(level), float(slope), 1 - rest / whole)
    if found is None or found.explained < _MIN_EXPLAINED or found.slope_s <= 0:
        return None
    far = found.level_s + found.slope_s * (float(load.max()) - found.in_flight)
    return found if far >= _MIN_RISE * found.level_s > 0 and found.explained > _straight(load, latency, whole) else None


def _straight(load: Floats, latency: Floats, whole: float) -> float:
    """The share of the variance that the broken line must exceed to beat a straight line by the adjusted R².

    The broken line has one more parameter, the knee.
    """
    slope, start = np.polyfit(load, latency, 1)
    explained = 1 - float(np.square(latency - start - slope * load).sum()) / whole
    return explained + (1 - explained) * 2 / max(load.size - 3, 1)


def _medians(load: Floats, latency: Floats) -> tuple[Floats, Floats]:
    """Medians of both over bins with equal numbers of runs, in order of load."""
    order = np.argsort(load, kind="stable")
    parts = np.array_split(order, _BINS)
    return (
        np.array([float(np.median(load[part])) for part in parts]),
        np.array([float(np.median(latency[part])) for part in parts]),
    )
