"""What went in and what it filled up: submissions and storage over time."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from harness.analysis.capacity.scaling import Scaling
from harness.analysis.series.thinning import Points, thinned
from harness.analysis.services.volumes import Volume
from harness.analysis.timeline import Floats, Timeline, floats
from harness.model.records import Outcome

_POINTS = 60
_BEYOND = 1.25  # times the most nodes that were measured


@dataclass(frozen=True, slots=True, eq=False)
class ScalingCurve:
    """Runs per hour by number of nodes.

    Attributes:
        nodes: shape (n,).
        linear: what they would achieve if each did as much as one alone.
        fitted: by the fitted law.
        low: the lower end of its 90% band.
        high: the upper end.
    """

    nodes: Floats
    linear: Floats
    fitted: Floats
    low: Floats
    high: Floats


def scaling_curve(found: Scaling) -> ScalingCurve:
    """From one node to a quarter beyond what was measured."""
    x = np.linspace(1.0, _BEYOND * found.fitted_on[1], _POINTS)
    low, high = found.band(x)
    return ScalingCurve(x, found.curve.gamma * x, found.curve.at(x), low, high)


_MIN_SHARE_WRITTEN = 0.01  # of a volume's capacity
_AT_ONCE_S = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class Submissions:
    """Latency and lag of each submission.

    Attributes:
        count: arrivals.
        at_once: all were due at the same instant: then x is the sequence number, else seconds after t0.
        last_due_s: when the last one was due.
        longest_s: the longest latency or lag.
        latency: seconds from due to answered.
        lag: seconds from due to sent.
        rejected: the lag of those that were rejected.
    """

    count: int
    at_once: bool
    last_due_s: float
    longest_s: float
    latency: Points
    lag: Points
    rejected: Points

    @property
    def is_thinned(self) -> bool:
        """Not every submission is a point."""
        return self.lag.x.size < self.count


def submissions(timeline: Timeline) -> Submissions | None:
    """None without a load of ours, and when nothing was sent."""
    runs = timeline.runs
    due, sent, answered = (floats(runs, name) for name in ("due_s", "sent_s", "answered_s"))
    if not timeline.plan.intended or not np.isfinite(sent).any():
        return None
    latency, lag = answered - due, sent - due
    at_once = float(np.nanmax(due) - np.nanmin(due)) < _AT_ONCE_S
    x = floats(runs, "seq") if at_once else due
    refused = (runs["outcome"] == Outcome.REJECTED.value).to_numpy(dtype=bool)
    return Submissions(
        count=len(runs),
        at_once=at_once,
        last_due_s=float(np.nanmax(due)),
        longest_s=float(np.nanmax(np.fmax(latency, lag))),
        latency=thinned(x, latency),
        lag=thinned(x, lag),
        rejected=thinned(x[refused], lag[refused]),
    )


@dataclass(frozen=True, slots=True, eq=False)
class FreeSpace:
    """Free bytes of a volume over seconds after t0."""

    volume: Volume
    free: Points


def free_space(volumes: Iterable[Volume]) -> tuple[FreeSpace, ...]:
    """The volumes whose use changed, the fullest first."""
    changed = (v for v in volumes if v.full or float(np.ptp(v.free)) > _MIN_SHARE_WRITTEN * v.capacity)
    fullest = sorted(changed, key=lambda v: v.least / v.capacity)
    return tuple(FreeSpace(volume, thinned(volume.at_s, volume.free)) for volume in fullest)
