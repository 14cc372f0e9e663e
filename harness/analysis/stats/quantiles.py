"""Quantiles with intervals, and the survival curve for runs whose end nobody saw."""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from harness.analysis.timeline import Bools, Floats

LEVELS = (0.5, 0.9, 0.95, 0.99)


@dataclass(frozen=True, slots=True)
class Quantile:
    """A quantile and its 95 % interval; a side of the interval that the sample can't bound is none.

    `value` is none when the sample does not reach so far: with censored runs it is then only known to be above
    `at_least`.
    """

    level: float
    value: float | None
    low: float | None
    high: float | None
    at_least: float = 0.0


@dataclass(frozen=True, slots=True)
class Summary:
    """A sample in a few figures; all in the sample's unit. `count` includes the `censored` ones."""

    count: int
    censored: int
    mean: float | None
    least: float | None
    most: float | None
    quantiles: tuple[Quantile, ...]

    def at(self, level: float) -> Quantile:
        """The quantile at `level`, which is one of LEVELS."""
        return next(q for q in self.quantiles if q.level == level)


def summarize(values: Floats, over: Bools | None = None, levels: tuple[float, ...] = LEVELS) -> Summary:
    """Figures of `values`; where `over` is false the value is only a lower bound (a run still going on).

    The mean is none when something is censored: it would be too low.
    """
    known = np.isfinite(values)
    over = np.ones(values.size, dtype=bool) if over is None else over
    values, over = values[known], over[known]
    censored = int(np.count_nonzero(~over))
    return Summary(
        count=int(values.size),
        censored=censored,
        mean=float(values.mean()) if values.size and not censored else None,
        least=float(values.min()) if values.size else None,
        most=float(values.max()) if values.size and not censored else None,
        quantiles=tuple(quantile(values, level, over) for level in levels),
    )


def quantile(values: Floats, level: float, over: Bools | None = None) -> Quantile:
    """The quantile of a sample without NaN, by order statistics; by Kaplan and Meier where runs are censored.

    The interval is distribution-free: the ranks of the binomial's normal approximation
    (Conover, Practical Nonparametric Statistics, 3.2), or Greenwood's variance for censored samples.
    """
    if not values.size:
        return Quantile(level, None, None, None)
    if over is not None and not over.all():
        return _censored_quantile(values, level, over)
    ordered = np.sort(values)
    count = ordered.size
    spread = NormalDist().inv_cdf(0.975) * math.sqrt(count * level * (1 - level))
    low, high = math.floor(count * level - spread), math.ceil(count * level + spread)
    return Quantile(
        level,
        float(ordered[min(math.ceil(count * level), count) - 1]),
        float(ordered[low - 1]) if low >= 1 else None,
        float(ordered[high]) if high < count else None,
        at_least=float(ordered[-1]),
    )


def share_interval(count: int, total: int) -> tuple[float, float]:
    """The 95 % interval of a share, of which `count` of `total` were seen (Wilson, J. Amer. Statist. Assoc. 22, 1927).

    Raises:
        ValueError: nothing was seen.
    """
    if total <= 0:
        raise ValueError("a share is of something")
    z, share = NormalDist().inv_cdf(0.975), count / total
    centre = (share + z * z / (2 * total)) / (1 + z * z / total)
    spread = z / (1 + z * z / total) * math.sqrt(share * (1 - share) / total + (z / (2 * total)) ** 2)
    return max(0.0, centre - spread), min(1.0, centre + spread)


@dataclass(frozen=True, slots=True, eq=False)
class Survival:
    """Kaplan-Meier: after `times[k]` seconds the share `surviving[k]` still goes on, give or take `deviation`."""

    times: Floats
    surviving: Floats
    deviation: Floats


def survival(values: Floats, over: Bools) -> Survival:
    """The product-limit estimate (Kaplan and Meier 1958) with Greenwood's formula for its variance."""
    times, which = np.unique(values, return_inverse=True)
    ends = np.bincount(which, weights=over, minlength=times.size)
    leaving = np.bincount(which, minlength=times.size)
    at_risk = values.size - np.concatenate(([0], np.cumsum(leaving)[:-1]))
    surviving = np.cumprod(1 - ends / at_risk)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(at_risk > ends, ends / (at_risk * (at_risk - ends)), 0.0)
    return Survival(times, surviving, surviving * np.sqrt(np.cumsum(terms)))


def _censored_quantile(values: Floats, level: float, over: Bools) -> Quantile:
    curve = survival(values, over)
    z = NormalDist().inv_cdf(0.975)

    def first(share: Floats) -> float | None:
        reached = np.flatnonzero(share <= 1 - level + 1e-12)
        return float(curve.times[reached[0]]) if reached.size else None

    return Quantile(
        level,
        first(curve.surviving),
        first(curve.surviving - z * curve.deviation),
        first(curve.surviving + z * curve.deviation),
        at_least=float(values.max()),
    )
