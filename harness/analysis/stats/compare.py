"""Is B different from A? The change in percent, its significance, and the smallest change the tests could detect.

Load tests are few, so the tests are exact: Fisher's permutation test of the difference of means for independent
repetitions, and of the mean of the pairs' log ratios (random signs) where repetitions were interleaved. One metric may
be named as the primary one before the tests. Holm's procedure (Scand. J. Statist. 6, 1979) keeps the error of the
primary metric's comparisons at 5 %, and that of all others, a second family, at 5 %.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import comb, floor, sqrt

import numpy as np

from harness.analysis.timeline import Floats

ALPHA = 0.05
POWER = 0.8
_RESAMPLES = 2000
_ARRANGEMENTS = 10_000  # up to this number all are counted; of more, this number of random ones
_MIN_TESTS_UNDRAWN = 100  # tests of each variant, from which on the arrangements need not be drawn
_MIN_FOR_SPREAD = 3
_MIN_PAIRS = 6  # with fewer, even pairs that all agree can't be significant


@dataclass(frozen=True, slots=True)
class Measurement:
    """One value of one test. In a paired comparison, tests with the same repetition ran side by side."""

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
        paired: whether repetitions were compared in pairs.
        p: after Holm's correction; none when no data of this size can be significant.
        detectable: the change that this many tests, with this spread, find with a probability of 80 %; none where they
            can't find any.
        primary: whether it is of the metric that was named in advance.
        chance: by how much one test of each differs by chance alone, at most, in 95 % of cases: the half-width of the
            prediction interval (Student's t) of their difference, as a share of the first mean, or of their ratio in
            pairs; none below three tests of each.
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
    primary: bool = False
    chance: float | None = None

    @property
    def significant(self) -> bool:
        """Whether the two differ, at 5 % over all comparisons of its family."""
        return self.p is not None and self.p <= ALPHA

    @property
    def sentence(self) -> str:
        """The comparison as one line of text."""
        where = f" at {self.scale}" if self.scale else ""
        if self.change is None:
            return f"{self.metric}{where}: no change in percent, as {self.first} is 0."
        direction = "higher" if self.change > 0 else "lower"
        change = f"{self.metric}{where}: {self.variant} is {abs(self.change):.1%} {direction} than {self.first}"
        if min(self.counts) < 2:
            return f"{change} (single test)."
        interval = f"95% interval {self.low:+.1%} to {self.high:+.1%}"
        if self.significant:
            return f"{change} ({interval}, p = {self.p:.2g})."
        power = f"; a change of {self.detectable:.0%} would have been found" if self.detectable is not None else ""
        p = "too few tests" if self.p is None else f"p = {self.p:.2g}"
        return f"{change}, not significant ({interval}, {p}{power})."


def compare(
    measurements: Iterable[Measurement], random: np.random.Generator, *, paired: bool, primary: str = ""
) -> tuple[Comparison, ...]:
    """Compare each further variant with the first, for each metric and scale that both have, in order of appearance.

    Args:
        measurements: of at least two variants.
        random: the source of bootstrap samples and of random arrangements.
        paired: whether tests with the same repetition ran side by side.
        primary: the metric named in advance; its comparisons come first and are a family of their own.
    """
    cells: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
    for m in measurements:
        cells.setdefault((m.metric, m.scale), {}).setdefault(m.variant, {})[m.repetition] = m.value
    order = list(dict.fromkeys(variant for arms in cells.values() for variant in arms))
    found = [
        _Cell(metric, scale, (order[0], variant), (arms[order[0]], arms[variant]), paired, metric == primary)
        for (metric, scale), arms in cells.items()
        for variant in order[1:]
        if order[0] in arms and variant in arms
    ]
    families = [[cell for cell in found if cell.primary is first] for first in (True, False)]
    return tuple(compared for family in families for compared in _family(family, random))


@dataclass(frozen=True, slots=True)
class _Cell:
    """The values of two variants by repetition, for one metric at one scale."""

    metric: str
    scale: str
    names: tuple[str, str]
    arms: tuple[Mapping[str, float], Mapping[str, float]]
    side_by_side: bool
    primary: bool

    @property
    def paired(self) -> bool:
        first, second = self.arms
        positive = min((*first.values(), *second.values())) > 0
        return self.side_by_side and first.keys() == second.keys() and len(first) >= _MIN_PAIRS and positive

    def values(self) -> tuple[Floats, Floats]:
        """The values of both; in pairs, in the same order."""
        first, second = self.arms
        keys = first if self.paired else second
        return np.array([*first.values()]), np.array([second[key] for key in keys])


def _family(cells: Sequence[_Cell], random: np.random.Generator) -> Iterable[Comparison]:
    ps = [_p(*cell.values(), random, cell.paired) for cell in cells]
    level = ALPHA / max(sum(p is not None for p in ps), 1)
    for cell, p in zip(cells, holm(ps), strict=True):
        yield _compared(cell, p, level, random)


def _compared(cell: _Cell, p: float | None, level: float, random: np.random.Generator) -> Comparison:
    a, b = cell.values()
    before, after = float(a.mean()), float(b.mean())
    change = after / before - 1 if before else None
    low = high = None
    if change is not None and min(a.size, b.size) > 1:
        low, high = _interval(a, b, random, cell.paired)
    return Comparison(
        cell.metric, cell.scale, *cell.names, (a.size, b.size), before, after, change, low, high, cell.paired, p,
        _detectable(a, b, cell.paired, level), cell.primary, _chance(a, b, cell.paired),
    )  # fmt: skip


def _interval(a: Floats, b: Floats, random: np.random.Generator, paired: bool) -> tuple[float, float]:
    """95 % percentile bootstrap of the ratio of means; deviations are widened, since small samples understate them."""
    of_a = random.integers(a.size, size=(_RESAMPLES, a.size))
    of_b = of_a if paired else random.integers(b.size, size=(_RESAMPLES, b.size))
    means = []
    for values, rows in ((a, of_a), (b, of_b)):
        centre = values.mean()
        means.append(centre + (values[rows].mean(axis=1) - centre) * sqrt(values.size / (values.size - 1)))
    low, high = np.quantile(means[1] / means[0] - 1, (0.025, 0.975)).tolist()
    return low, high


def _p(a: Floats, b: Floats, random: np.random.Generator, paired: bool) -> float | None:
    if _attainable(a.size, b.size, paired, ALPHA) is None:
        return None  # no data of this size can be significant
    return sign_flip(np.log(b / a), random) if paired else permutation(a, b, random)


def _attainable(first: int, second: int, paired: bool, level: float) -> float | None:
    """The largest p value up to `level` that the exact test can give; none when there is none."""
    if min(first, second) < 2:
        return None
    step = _step(first, second, paired)
    return floor(level / step) * step or None


def _step(first: int, second: int, paired: bool) -> float:
    """The least p value of the exact test."""
    if paired:
        return 2.0 ** (1 - first)
    # With equally many tests in both, an arrangement and its mirror image have the same difference.
    return (2 if first == second else 1) / comb(first + second, first)


def permutation(a: Floats, b: Floats, random: np.random.Generator) -> float:
    """Two-sided p that which test belongs to which variant is random, by the difference of means.

    Of many tests by Student's t, to which the arrangements' distribution tends (Hoeffding, Ann. Math. Statist. 23,
    1952).
    """
    from scipy.stats import permutation_test, ttest_ind

    if min(a.size, b.size) >= _MIN_TESTS_UNDRAWN:
        if not np.ptp(a) + np.ptp(b):
            return float(a[0] == b[0])
        return float(ttest_ind(a, b).pvalue)
    tested = permutation_test(
        (a, b),
        lambda x, y, axis: np.abs(x.mean(axis=axis) - y.mean(axis=axis)),
        permutation_type="independent", vectorized=True, n_resamples=_ARRANGEMENTS, batch=_ARRANGEMENTS,
        alternative="greater", rng=random,
    )  # fmt: skip
    return float(tested.pvalue)


def sign_flip(differences: Floats, random: np.random.Generator) -> float:
    """Two-sided p that the differences' signs are random, by their sum."""
    from scipy.stats import permutation_test

    tested = permutation_test(
        (differences,),
        lambda flipped, axis: np.abs(flipped.sum(axis=axis)),
        permutation_type="samples", vectorized=True, n_resamples=_ARRANGEMENTS, batch=_ARRANGEMENTS,
        alternative="greater", rng=random,
    )  # fmt: skip
    return float(tested.pvalue)


def holm(ps: Sequence[float | None]) -> list[float | None]:
    """Holm's adjusted p values, in the given order; none stays none and does not count."""
    known = sorted((p, k) for k, p in enumerate(ps) if p is not None)
    adjusted: list[float | None] = [None] * len(ps)
    most = 0.0
    for rank, (p, k) in enumerate(known):
        most = max(most, min(1.0, (len(known) - rank) * p))
        adjusted[k] = most
    return adjusted


def _chance(a: Floats, b: Floats, paired: bool) -> float | None:
    """See `Comparison.chance`."""
    from scipy.stats import t

    if min(a.size, b.size) < _MIN_FOR_SPREAD or not a.mean():
        return None
    if paired:
        spread = float(np.std(np.log(b / a), ddof=1))
        return float(np.expm1(t.isf(ALPHA / 2, a.size - 1) * spread))
    spread, freedom = sqrt(float(a.var(ddof=1)) + float(b.var(ddof=1))), a.size + b.size - 2
    return float(t.isf(ALPHA / 2, freedom) * spread / abs(float(a.mean())))


def _detectable(a: Floats, b: Floats, paired: bool, level: float) -> float | None:
    """The detectable change at this level, as a share of the first mean.

    That of the t test at the level that the exact test can attain, see `_deviations`. The permutation test has about
    its power, unless only the most extreme arrangement is significant: then none.
    """
    attained = _attainable(a.size, b.size, paired, level)
    if attained is None or attained < 2 * _step(a.size, b.size, paired) or not a.mean() or not b.mean():
        return None
    if paired:
        # The pairs' log ratios are what is tested; the change is that of the ratio.
        error, freedom = float(np.std(np.log(b / a), ddof=1)) / sqrt(a.size), a.size - 1
        return float(np.expm1(_deviations(freedom, attained) * error))
    return _solved(
        _deviations(a.size + b.size - 2, attained),
        *(float(each.var(ddof=1)) / each.size / float(each.mean()) ** 2 for each in (a, b)),
    )


@cache
def _deviations(freedom: int, level: float) -> float:
    """How many of its *estimated* standard errors a difference must be, for the t test to find it with `POWER`.

    The power is that of the noncentral t distribution, on average over the estimates of the spread that tests of this
    number give: by the quantiles of its chi-squared distribution.
    """
    from scipy.optimize import brentq
    from scipy.stats import chi2, nct, t

    critical, estimates = t.isf(level / 2, freedom), np.sqrt(chi2.ppf((np.arange(64) + 0.5) / 64, freedom) / freedom)
    return float(brentq(lambda found: float(np.mean(nct.sf(critical, freedom, found * estimates))) - POWER, 0.0, 99.0))


def _solved(deviations: float, first: float, second: float) -> float | None:
    """The change x that equals that many standard errors: x² = deviations² (first + (1 + x)² second), if there is any.

    Noise grows with what is measured, so that the second variance (of a mean, relative to it) is of the changed value.
    """
    first, second = deviations**2 * first, deviations**2 * second
    return (second + sqrt(first + second - first * second)) / (1 - second) if second < 1 else None
