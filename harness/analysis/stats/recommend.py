"""Which of several variants to take: the one that comes nearest to the best of each metric, and how sure that is."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log

import numpy as np

from harness.analysis.stats.compare import Comparison, Measurement, compare

_FAILED = "failed_ratio"
_MOST_MORE_FAILED = 0.01
_HIGHER = ("throughput", "goodput")
_LOWER = ("(s)", "duration", "time", "latency", "makespan", "lost", "imbalance")


@dataclass(frozen=True, slots=True)
class Recommendation:
    """A variant and what speaks for it.

    Attributes:
        variant: the recommended one.
        next: the best of the others.
        shortfall: of every variant that may be taken, how many times the best value of each metric it comes to, as the
            geometric mean over metrics and scales; 1 is best everywhere.
        failing: variants that are out because more of their runs fail.
        better: metrics and scales in which it is significantly better than `next`.
        worse: those in which it is significantly worse.
        compared: how many there are.
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
        """For people."""
        order = sorted(self.shortfall.items(), key=lambda item: item[1])
        told = ", ".join(f"{name} {times:.2f}" for name, times in order)
        parts = [f"Recommended: {self.variant}. Times the best value, over {self.compared} comparisons: {told}."]
        if self.failing:
            parts.append(f"More runs fail with {', '.join(self.failing)}.")
        if not self.repeated:
            parts.append("One test of a variant proves nothing: repeat them.")
        elif self.better:
            parts.append(f"Against {self.next} it is significantly better in {', '.join(self.better)}.")
        elif not self.worse:
            parts.append(f"Against {self.next} no difference is significant: more tests would tell, or take either.")
        if self.worse:
            parts.append(f"It is significantly worse in {', '.join(self.worse)}.")
        return " ".join(parts)


def recommend(
    measurements: Sequence[Measurement], random: np.random.Generator, *, paired: bool
) -> Recommendation | None:
    """The variant to take; none when fewer than two are left, or no metric says which direction is better."""
    variants = list(dict.fromkeys(m.variant for m in measurements))
    means = _means(measurements)
    failing = _failing(means, variants)
    left = [variant for variant in variants if variant not in failing]
    shortfall = _shortfall(means, left)
    if len(left) < 2 or not shortfall:
        return None
    best, second = sorted(left, key=lambda variant: shortfall[variant])[:2]
    found = [
        c
        for c in compare(
            [m for m in _first(measurements, second) if m.variant in {best, second}], random, paired=paired
        )
        if _direction(c.metric)
    ]
    better = tuple(_place(c) for c in found if c.significant and (c.change or 0) * _direction(c.metric) > 0)
    worse = tuple(_place(c) for c in found if c.significant and (c.change or 0) * _direction(c.metric) < 0)
    return Recommendation(
        best, second, shortfall, tuple(failing), better, worse, len(found), all(min(c.counts) > 1 for c in found)
    )


def _direction(metric: str) -> int:
    """1 where more is better, -1 where less is; 0 where the name does not tell."""
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
    return [v for v in variants if any(arms.get(v, 0.0) > min(arms.values()) + _MOST_MORE_FAILED for arms in shares)]


def _shortfall(means: dict[tuple[str, str], dict[str, float]], variants: Sequence[str]) -> dict[str, float]:
    """By variant, over the cells that all of them have; empty where there is none."""
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
    """With that variant's first, so that others are compared with it."""
    return sorted(measurements, key=lambda m: m.variant != variant)


def _place(found: Comparison) -> str:
    change = f" ({found.change:+.0%})" if found.change is not None else ""
    return f"{found.metric}{f' at {found.scale}' if found.scale else ''}{change}"
