"""Is B different from A? A change in percent, how sure it is, and what could have been seen at all.

Tests are exact where samples are small, since load tests are: Mann and Whitney's rank test (Ann. Math. Statist. 18,
1947) for independent repetitions; where repetitions were interleaved, Fisher's sign-flip test of the log ratios of
pairs. Holm's procedure (Scand. J. Statist. 6, 1979) keeps all comparisons of one call together at 5 %.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import product
from math import comb, erfc, sqrt
from statistics import NormalDist

import numpy as np

from harness.analysis.timeline import Floats

ALPHA = 0.05
POWER = 0.8
_RESAMPLES = 2000
_EXACT = 12  # pairs; beyond, sign flips are drawn
_FLIPS = 20_000
_LEAST_PAIRS = 8  # with fewer, all pairs agreeing is hardly evidence once several metrics are compared


@dataclass(frozen=True, slots=True)
class Measurement:
    """One value of one test. Tests of two variants with the same repetition ran side by side if they are paired."""

    variant: str
    scale: str
    repetition: str
    metric: str
    value: float


@dataclass(frozen=True, slots=True)
class Comparison:
    """A variant against the first one, for one metric at one scale.

    Attributes:
        counts: tests of the first variant and of this one.
        before: the first variant's mean.
        after: this variant's mean.
        change: after / before - 1; none when before is 0.
        low: lower end of the change's 95 % bootstrap interval; none for a single test.
        high: its upper end.
        paired: whether repetitions were taken as pairs.
        p: after Holm's correction; none when a test can't tell anything.
        detectable: the smallest change that so many tests would find with a probability of 80 %; none for one test.
    """

    metric: str
    scale: str
    first: str
    variant: str
    counts: tuple[int, int]
    before: float
    after: float
    change: float | None
    low: float | None
    high: float | None
    paired: bool
    p: float | None
    detectable: float | None

    @property
    def significant(self) -> bool:
        """The two differ, at 5 % over all comparisons of the call."""
        return self.p is not None and self.p <= ALPHA

    @property
    def sentence(self) -> str:
        """For people."""
        where = f" at {self.scale}" if self.scale else ""
        if self.change is None:
            return f"{self.metric}{where}: {self.first} is 0, so no change in percent can be given."
        direction = "higher" if self.change > 0 else "lower"
        told = f"{self.metric}{where}: {self.variant} is {abs(self.change):.1%} {direction} than {self.first}"
        if min(self.counts) < 2:
            return f"{told} (single test)."
        interval = f"95% interval {self.low:+.1%} to {self.high:+.1%}"
        if self.significant:
            return f"{told} ({interval}, p = {self.p:.2g})."
        found = f"; a change of {self.detectable:.0%} would have been found" if self.detectable is not None else ""
        few = ", too few tests to tell" if self.p is None else f", p = {self.p:.2g}"
        return f"{told}, which may be chance ({interval}{few}{found})."


def compare(
    measurements: Iterable[Measurement], random: np.random.Generator, *, paired: bool
) -> tuple[Comparison, ...]:
    """Each further variant against the first, for each metric and scale that both have; in the order of appearance.

    Args:
        measurements: of at least two variants.
        random: for the bootstrap, and for sign flips of many pairs.
        paired: whether equal repetitions ran side by side.
    """
    cells: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
    for m in measurements:
        cells.setdefault((m.metric, m.scale), {}).setdefault(m.variant, {})[m.repetition] = m.value
    order = list(dict.fromkeys(variant for arms in cells.values() for variant in arms))
    found = [
        _compare(metric, scale, (order[0], variant), (arms[order[0]], arms[variant]), random, paired)
        for (metric, scale), arms in cells.items()
        for variant in order[1:]
        if order[0] in arms and variant in arms
    ]
    adjusted = holm([c.p for c in found])
    return tuple(replace(c, p=p) for c, p in zip(found, adjusted, strict=True))


def _compare(
    metric: str,
    scale: str,
    names: tuple[str, str],
    arms: tuple[Mapping[str, float], Mapping[str, float]],
    random: np.random.Generator,
    paired: bool,
) -> Comparison:
    common = [key for key in arms[0] if key in arms[1]]
    pairs = paired and len(common) == len(arms[0]) == len(arms[1]) and len(common) >= _LEAST_PAIRS
    keys = (common, common) if pairs else (list(arms[0]), list(arms[1]))
    a, b = (np.array([arm[key] for key in of]) for arm, of in zip(arms, keys, strict=True))
    before, after = float(a.mean()), float(b.mean())
    pairs = pairs and bool((a > 0).all() and (b > 0).all())
    change = after / before - 1 if before else None
    low = high = None
    if change is not None and min(a.size, b.size) > 1:
        low, high = _interval(a, b, random, pairs)
    return Comparison(
        metric,
        scale,
        *names,
        (a.size, b.size),
        before,
        after,
        change,
        low,
        high,
        pairs,
        _p(a, b, random, pairs),
        _detectable(a, b, pairs),
    )


def _interval(a: Floats, b: Floats, random: np.random.Generator, paired: bool) -> tuple[float, float]:
    """95 % percentile bootstrap of the ratio of means; deviations are widened, as small samples show too little."""
    of_a = random.integers(a.size, size=(_RESAMPLES, a.size))
    of_b = of_a if paired else random.integers(b.size, size=(_RESAMPLES, b.size))
    means = []
    for values, rows in ((a, of_a), (b, of_b)):
        centre = values.mean()
        means.append(centre + (values[rows].mean(axis=1) - centre) * sqrt(values.size / (values.size - 1)))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = means[1] / means[0] - 1
    low, high = np.quantile(ratio[np.isfinite(ratio)], (0.025, 0.975)).tolist()
    return low, high


def _p(a: Floats, b: Floats, random: np.random.Generator, paired: bool) -> float | None:
    if min(a.size, b.size) < 2:
        return None
    if paired:
        return sign_flip(np.log(b / a), random)
    if 2 / comb(a.size + b.size, a.size) > ALPHA:
        return None  # no data of this size can be significant
    return mann_whitney(a, b)


def mann_whitney(a: Floats, b: Floats) -> float:
    """Two-sided p of the rank test: exact without ties and up to 400 pairs, else the normal approximation."""
    both = np.concatenate((a, b))
    values, counts = np.unique(both, return_counts=True)
    above = np.searchsorted(np.sort(a), b, side="left").sum()
    equal = np.searchsorted(np.sort(a), b, side="right").sum() - above
    statistic = float(above + equal / 2)
    middle = a.size * b.size / 2
    if values.size == both.size and a.size * b.size <= 400:
        counted = _ranks(a.size, b.size)
        tail = int(min(statistic, 2 * middle - statistic))
        return min(1.0, 2 * sum(counted[: tail + 1]) / comb(both.size, a.size))
    ties = float((counts.astype(float) ** 3 - counts).sum()) / (both.size * (both.size - 1))
    variance = a.size * b.size / 12 * (both.size + 1 - ties)
    if variance <= 0:
        return 1.0
    return erfc(max(abs(statistic - middle) - 0.5, 0.0) / sqrt(2 * variance))


@lru_cache(maxsize=64)
def _ranks(n: int, m: int) -> tuple[int, ...]:
    """In how many orders of n and m values the rank statistic is 0, 1, …, n m (Mann and Whitney's recursion)."""
    if not n or not m:
        return (1,)
    found = [0] * (n * m + 1)
    for k, count in enumerate(_ranks(n - 1, m)):
        found[k + m] += count
    for k, count in enumerate(_ranks(n, m - 1)):
        found[k] += count
    return tuple(found)


def sign_flip(differences: Floats, random: np.random.Generator) -> float:
    """Two-sided p that differences are as likely the other way round: all flips, or many drawn ones."""
    observed = abs(float(differences.sum()))
    if differences.size <= _EXACT:
        signs = np.array(list(product((-1.0, 1.0), repeat=differences.size)))
        return float((np.abs(signs @ differences) >= observed * (1 - 1e-12)).mean())
    signs = random.choice((-1.0, 1.0), size=(_FLIPS, differences.size))
    return float(((np.abs(signs @ differences) >= observed).sum() + 1) / (_FLIPS + 1))


def holm(ps: Sequence[float | None]) -> list[float | None]:
    """Adjusted p values, in the given order; none stays none and does not count."""
    known = sorted((p, k) for k, p in enumerate(ps) if p is not None)
    adjusted: list[float | None] = [None] * len(ps)
    most = 0.0
    for rank, (p, k) in enumerate(known):
        most = max(most, min(1.0, (len(known) - rank) * p))
        adjusted[k] = most
    return adjusted


def _detectable(a: Floats, b: Floats, paired: bool) -> float | None:
    """(z of the level + z of the power) standard errors, as a share of the first mean."""
    if min(a.size, b.size) < 2 or not a.mean():
        return None
    if paired:
        error = float(np.std(b - a, ddof=1)) / sqrt(a.size)
    else:
        error = sqrt(float(a.var(ddof=1)) / a.size + float(b.var(ddof=1)) / b.size)
    normal = NormalDist()
    return (normal.inv_cdf(1 - ALPHA / 2) + normal.inv_cdf(POWER)) * error / abs(float(a.mean()))
