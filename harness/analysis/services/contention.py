"""Whether executions that compute at the same time slow each other down, as on a machine with too few cores.

Two explanations of the computing times are compared by their likelihood. Either each computes as long as it needs, and
what they need is lognormal; or c cores are shared evenly by all that compute (processor sharing), and the work that
each has done by its end is lognormal. With n(t) computing at t, an execution from a to b has done the work
w = ∫ min(1, c / n(t)) dt over [a, b], and the density of its duration is that of its work times min(1, c / n(b)). The
first is the second with any number of cores, so twice the logarithm of the ratio is chi-squared with one degree of
freedom if it is true (Wilks, 1938); half of that probability, as c is at the limit of what it can be (Self and Liang,
1987). The upper tail of that distribution beyond x is erfc(sqrt(x / 2)).
"""

from dataclasses import dataclass
from math import erfc, sqrt

import numpy as np

from harness.analysis.timeline import Floats, Timeline, active, floats, peak, remembered
from harness.model.phases import COMPUTING

_MIN_EXECUTIONS = 20  # executions
_MAX_CANDIDATES = 32  # numbers of cores, at most
# How often executions that don't slow each other down look as if they did. Where many compute at once, cores are short
# more often than where few do: weaker signs of it suffice.
_MAX_CHANCE, _MAX_CHANCE_OF_MANY, _MANY_CORES = 1e-3, 5e-3, 5.0


@dataclass(frozen=True, slots=True)
class Contention:
    """How executions shared the cores.

    Attributes:
        cores: the most likely number of them.
        lost: share of the computing time that they cost each other.
        p: probability of computing times that support this as much, if each computed as long as it needs.
    """

    cores: float
    lost: float
    p: float

    @property
    def likely(self) -> bool:
        """Whether chance hardly explains the computing times."""
        return self.p < (_MAX_CHANCE_OF_MANY if self.cores >= _MANY_CORES else _MAX_CHANCE)


NONE = Contention(np.inf, 0.0, 1.0)


@remembered
def contention(timeline: Timeline) -> Contention:
    """Of the executions that reported their computing; `NONE` where few did."""
    stretches = timeline.pods[timeline.of_runs(COMPUTING)]
    return shared(floats(stretches, "start_s"), floats(stretches, "end_s"))


def shared(start: Floats, end: Floats) -> Contention:
    """Of executions that computed from `start` to `end`, seconds, shape (n,); those that have not ended don't count."""
    over = np.isfinite(start) & np.isfinite(end) & (end > start)
    start, end = start[over], end[over]
    most = peak(start, end) if start.size else 0
    if start.size < _MIN_EXECUTIONS or most < 2:
        return NONE
    at = np.unique(np.concatenate((start, end)))
    number, length = active(start, end, at[:-1]), np.diff(at)
    last = number[np.searchsorted(at, end) - 1]  # that compute when it ends, itself included
    alone = _log_likelihood(end - start, np.ones_like(start))
    best, cores, work = alone, np.inf, end - start
    for candidate in np.unique(np.geomspace(1.0, most, _MAX_CANDIDATES).round(1))[:-1]:
        speed = np.minimum(1.0, candidate / np.maximum(number, 1.0))
        done = np.concatenate(([0.0], np.cumsum(speed * length)))
        worked = done[np.searchsorted(at, end)] - done[np.searchsorted(at, start)]
        found = _log_likelihood(worked, np.minimum(1.0, candidate / last))
        if found > best:
            best, cores, work = found, float(candidate), worked
    if not np.isfinite(cores):
        return NONE
    lost = 1 - float(work.sum()) / float((end - start).sum())
    return Contention(cores, lost, erfc(sqrt(best - alone)) / 2)


def _log_likelihood(work: Floats, speed: Floats) -> float:
    """Of lognormal work with the most likely parameters, up to a constant, where it is done at `speed` at its end."""
    logs = np.log(work)
    return float(np.log(speed).sum() - logs.sum() - work.size * np.log(max(float(logs.std()), 1e-9)))
