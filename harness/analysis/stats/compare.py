"""Is B different from A? The change in percent, its significance, and the smallest change the tests could detect.

Significance tests are exact for small samples, which load tests have: Mann and Whitney's rank test (Ann. Math.
Statist. 18, 1947) for independent repetitions; Fisher's sign-flip test of the pairs' log ratios for interleaved ones.
Holm's procedure (Scand. J. Statist. 6, 1979) keeps the error over all comparisons of one call at 5 %.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import comb, sqrt
from statistics import NormalDist

import numpy as np

from harness.analysis.timeline import Floats

ALPHA = 0.05
POWER = 0.8
_RESAMPLES = 2000
_EXACT_PAIRS = 400  # of values, for the exact rank test
_EXACT_FLIPS, _RANDOM_FLIPS = 12, 20_000  # up to so many pairs all sign flips are counted; beyond, random ones
_LEAST_PAIRS = 8  # with fewer, even full agreement is weak evidence once several metrics are compared


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
        detectable: the smallest change that so many tests would detect with a probability of 80 %; none for one test.
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
        """Whether the two differ, at 5 % over all comparisons of the call."""
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
        power = f"; detectable change: {self.detectable:.0%}" if self.detectable is not None else ""
        p = "too few tests" if self.p is None else f"p = {self.p:.2g}"
        return f"{change}, not significant ({interval}, {p}{power})."


def compare(
    measurements: Iterable[Measurement], random: np.random.Generator, *, paired: bool
) -> tuple[Comparison, ...]:
    """Compare each further variant with the first, for each metric and scale that both have, in order of appearance.

    Args:
        measurements: of at least two variants.
        random: the source of bootstrap samples and of random sign flips.
        paired: whether tests with the same repetition ran side by side.
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
    """95 % percentile bootstrap of the ratio of means; deviations are widened, since small samples understate them."""
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
    from scipy.stats import mannwhitneyu

    ties = np.unique(np.concatenate((a, b))).size < a.size + b.size
    exact = not ties and a.size * b.size <= _EXACT_PAIRS
    return float(mannwhitneyu(a, b, method="exact" if exact else "asymptotic").pvalue)


def sign_flip(differences: Floats, random: np.random.Generator) -> float:
    """Two-sided p that the differences' signs are random: over all flips, or over many random ones."""
    from scipy.stats import permutation_test

    flips = 2**differences.size if differences.size <= _EXACT_FLIPS else _RANDOM_FLIPS
    tested = permutation_test(
        (differences,),
        lambda flipped, axis: np.abs(flipped.sum(axis=axis)),
        permutation_type="samples", vectorized=True, n_resamples=flips, alternative="greater", rng=random,
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


def _detectable(a: Floats, b: Floats, paired: bool) -> float | None:
    """The detectable change: (z of the level + z of the power) standard errors, as a share of the first mean."""
    if min(a.size, b.size) < 2 or not a.mean():
        return None
    if paired:
        error = float(np.std(b - a, ddof=1)) / sqrt(a.size)
    else:
        error = sqrt(float(a.var(ddof=1)) / a.size + float(b.var(ddof=1)) / b.size)
    normal = NormalDist()
    return (normal.inv_cdf(1 - ALPHA / 2) + normal.inv_cdf(POWER)) * error / abs(float(a.mean()))
