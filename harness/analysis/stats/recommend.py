"""Which of several variants to use: the one closest to the best value of every metric, and its significance."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log

import numpy as np

from harness.analysis.stats.compare import Comparison, Measurement, compare

_FAILED = "failed_ratio"
_MAX_MORE_FAILED = 0.01
_HIGHER = ("throughput", "goodput")
_LOWER = ("(s)", "duration", "time", "latency", "makespan", "lost", "imbalance")


@dataclass(frozen=True, slots=True)
class Recommendation:
    """The recommended variant, against the others.

    Attributes:
        variant: the recommended one.
        next: the runner-up.
        shortfall: by eligible variant, the geometric-mean ratio of its values to the best variant's over all metrics
            and scales; 1 is best everywhere.
        failing: variants that are not eligible because more of their runs fail.
        better: metrics and scales in which the variant is significantly better than `next`.
        worse: those in which it is significantly worse.
        compared: the number of metrics and scales.
        repeated: whether both were tested more than once.
    """

    variant: str
    next: str
    shortfall: dict[str, float]
    failing: tuple[str, ...]
    better: tuple[str, ...]
    worse: tuple[str, ...]
    compared: int
    repeated: bool

    @property
    def sentence(self) -> str:
        """The recommendation as text."""
        order = sorted(self.shortfall.items(), key=lambda item: item[1])
        ratios = ", ".join(f"{name} {ratio:.2f}" for name, ratio in order)
        ratio = f"Geometric-mean ratio to the best variant over {self.compared} comparisons (1.00 = best): {ratios}."
        parts = [f"Recommended: {self.variant}. {ratio}"]
        if self.failing:
            parts.append(f"More runs fail with {', '.join(self.failing)}.")
        if not self.repeated:
            parts.append("Single tests can't show significance: repeat them.")
        elif self.better:
            parts.append(f"Significantly better than {self.next} in {', '.join(self.better)}.")
        elif not self.worse:
            parts.append(f"No difference from {self.next} is significant: run more tests, or choose either.")
        if self.worse:
            parts.append(f"Significantly worse in {', '.join(self.worse)}.")
        return " ".join(parts)


def recommend(
    measurements: Sequence[Measurement], random: np.random.Generator, *, paired: bool
) -> Recommendation | None:
    """The variant to use; none when fewer than two are eligible, or no metric has a known better direction."""
    variants = list(dict.fromkeys(m.variant for m in measurements))
    means = _means(measurements)
    failing = _failing(means, variants)
    left = [variant for variant in variants if variant not in failing]
    shortfall = _shortfall(means, left)
    if len(left) < 2 or not shortfall:
        return None
    best, second = sorted(left, key=lambda variant: shortfall[variant])[:2]
    comparisons = [
        c
        for c in compare(
            [m for m in _first(measurements, second) if m.variant in {best, second}], random, paired=paired
        )
        if _direction(c.metric)
    ]
    better = tuple(_place(c) for c in comparisons if c.significant and (c.change or 0) * _direction(c.metric) > 0)
    worse = tuple(_place(c) for c in comparisons if c.significant and (c.change or 0) * _direction(c.metric) < 0)
    return Recommendation(
        best,
        second,
        shortfall,
        tuple(failing),
        better,
        worse,
        len(comparisons),
        all(min(c.counts) > 1 for c in comparisons),
    )


def _direction(metric: str) -> int:
    """1 where higher is better, -1 where lower is; 0 where the metric's name does not show it."""
    if any(word in metric for word in _HIGHER):
        return 1
    return -1 if metric != _FAILED and any(word in metric.lower() for word in _LOWER) else 0


def _means(measurements: Sequence[Measurement]) -> dict[tuple[str, str], dict[str, float]]:
    values: dict[tuple[str, str], dict[str, list[float]]] = {}
    for m in measurements:
        values.setdefault((m.metric, m.scale), {}).setdefault(m.variant, []).append(m.value)
    return {cell: {v: float(np.mean(found)) for v, found in arms.items()} for cell, arms in values.items()}


def _failing(means: dict[tuple[str, str], dict[str, float]], variants: Sequence[str]) -> list[str]:
    shares = [arms for (metric, _), arms in means.items() if metric == _FAILED]
    return [v for v in variants if any(arms.get(v, 0.0) > min(arms.values()) + _MAX_MORE_FAILED for arms in shares)]


def _shortfall(means: dict[tuple[str, str], dict[str, float]], variants: Sequence[str]) -> dict[str, float]:
    """`Recommendation.shortfall` over the cells that all variants have; empty when there is none."""
    logs: list[list[float]] = []
    for (metric, _), arms in means.items():
        values = [arms.get(variant, 0.0) for variant in variants]
        if (way := _direction(metric)) and values and min(values) > 0:
            best = max(values) if way > 0 else min(values)
            logs.append([way * log(best / value) for value in values])
    if not logs:
        return {}
    return dict(zip(variants, (exp(mean) for mean in np.mean(logs, axis=0).tolist()), strict=True))


def _first(measurements: Sequence[Measurement], variant: str) -> list[Measurement]:
    """That variant's measurements first, so that the others are compared with it."""
    return sorted(measurements, key=lambda m: m.variant != variant)


def _place(found: Comparison) -> str:
    change = f" ({found.change:+.0%})" if found.change is not None else ""
    return f"{found.metric}{f' at {found.scale}' if found.scale else ''}{change}"
