"""Quantiles and shares with intervals, and the survival curve for runs whose end was not observed."""

import math
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from harness.analysis.timeline import Bools, Floats

LEVELS = (0.5, 0.9, 0.95, 0.99)
_CONFIDENCE = 0.95
_Z = NormalDist().inv_cdf((1 + _CONFIDENCE) / 2)


@dataclass(frozen=True, slots=True)
class Quantile:
    """A quantile and its 95 % interval; an end of the interval that the sample does not bound is none.

    `value` is none when the sample does not reach that level: with censored runs it is then only known to be above
    `at_least`.
    """

    level: float
    value: float | None
    low: float | None
    high: float | None
    at_least: float = 0.0


@dataclass(frozen=True, slots=True)
class Summary:
    """A sample in a few figures, all in the sample's unit. `count` includes the `censored` values."""

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
    """Summarise `values`, NaN left out; where `over` is false a value is only a lower bound (a run in flight).

    The mean is none when a value is censored: it would be too low.
    """
    known = np.isfinite(values)
    over = np.ones(values.size, dtype=bool) if over is None else over
    if not known.all():
        values, over = values[known], over[known]
    censored = int(np.count_nonzero(~over))
    return Summary(
        count=int(values.size),
        censored=censored,
        mean=float(values.mean()) if values.size and not censored else None,
        least=float(values.min()) if values.size else None,
        most=float(values.max()) if values.size and not censored else None,
        quantiles=quantiles(values, levels, over),
    )


def quantile(values: Floats, level: float, over: Bools | None = None) -> Quantile:
    """One quantile, see `quantiles`."""
    return quantiles(values, (level,), over)[0]


def quantiles(values: Floats, levels: tuple[float, ...], over: Bools | None = None) -> tuple[Quantile, ...]:
    """Quantiles of a sample without NaN, by order statistics; by the Kaplan-Meier estimate where runs are censored.

    The interval is distribution-free: the ranks of the binomial's normal approximation
    (Conover, Practical Nonparametric Statistics, 3.2), or Greenwood's variance for censored samples.
    """
    if not values.size:
        return tuple(Quantile(level, None, None, None) for level in levels)
    if over is not None and not over.all():
        curve, most = survival(values, over), float(values.max())
        return tuple(curve.quantile(level, at_least=most) for level in levels)
    ordered = np.sort(values)
    return tuple(_of_ordered(ordered, level) for level in levels)


def _of_ordered(ordered: Floats, level: float) -> Quantile:
    count = ordered.size
    spread = spread_of_ranks(count, level)
    low, high = math.floor(count * level - spread), math.ceil(count * level + spread)
    return Quantile(
        level,
        float(ordered[min(math.ceil(count * level), count) - 1]),
        float(ordered[low - 1]) if low >= 1 else None,
        float(ordered[high]) if high < count else None,
        at_least=float(ordered[-1]),
    )


def spread_of_ranks(count: int, level: float) -> float:
    """How many ranks the 95 % interval of a quantile reaches to both sides, of `count` values."""
    return _Z * math.sqrt(count * level * (1 - level))


def mean_interval(values: Floats, count: int | None = None) -> tuple[float | None, float | None]:
    """The 95 % interval of the mean by Student's t, as if there were `count` values like these; none of one value."""
    count = values.size if count is None else count
    if values.size < 2 or count < 2:
        return None, None
    from scipy.special import stdtrit

    mean, error = float(values.mean()), float(values.std(ddof=1)) / math.sqrt(count)
    half = float(stdtrit(count - 1, (1 + _CONFIDENCE) / 2)) * error
    return mean - half, mean + half


def share_interval(count: int, total: int) -> tuple[float, float]:
    """The 95 % interval of the share `count` / `total` (Wilson, J. Amer. Statist. Assoc. 22, 1927).

    Raises:
        ValueError: `total` is not above 0.
    """
    if total <= 0:
        raise ValueError("the total of a share must be above 0")
    middle = (2 * count + _Z**2) / (2 * (total + _Z**2))
    half = _Z * math.sqrt(4 * count * (total - count) / total + _Z**2) / (2 * (total + _Z**2))
    return middle - half if count else 0.0, middle + half if count < total else 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Survival:
    """Kaplan-Meier: the share `surviving[k]` of the runs lasts longer than `times[k]` seconds; `low`, `high`: 95 %."""

    times: Floats
    surviving: Floats
    low: Floats
    high: Floats

    def quantile(self, level: float, at_least: float) -> Quantile:
        """The quantile at `level`, and where its interval's ends are; none for what the curve does not reach."""

        def reached(share: Floats) -> float | None:
            at = np.flatnonzero(share <= 1 - level + 1e-12)
            return float(self.times[at[0]]) if at.size else None

        return Quantile(level, reached(self.surviving), reached(self.low), reached(self.high), at_least)


def survival(values: Floats, over: Bools) -> Survival:
    """The product-limit estimate (Kaplan and Meier 1958) with Greenwood's formula for its variance."""
    times, which = np.unique(values, return_inverse=True)
    ended = np.bincount(which, weights=over)
    left = values.size - np.cumsum(np.bincount(which)) + np.bincount(which)  # whose end is not before that time
    surviving: Floats = np.cumprod((left - ended) / left, dtype=np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):  # the interval is undefined where no run is left: that is 0
        error = surviving * np.sqrt(np.cumsum(ended / (left * (left - ended))))
        low, high = (np.nan_to_num(np.clip(surviving + z * error, 0.0, 1.0)) for z in (-_Z, _Z))
    return Survival(times, surviving, low, high)
