"""Runs, time, nodes: any two give the third, with an interval for its uncertainty.

The time that N runs take on M nodes is modelled as

    D(N, M) = c + t W(N, M) + s N + k N M

c is the overhead of any test, whatever its size (scale-up, the drain of the last run). W is the work of one node: N / M
where runs flow through (service), sqrt(1 + (N / (M j))^2) where j of them fill a node (fewer take the time of one), or
the number of waves ceil(N / (M j)) where j start and end together. s is the time at a resource that all nodes share
(contention: an API server, a store), k the cost of each node to all others (coherency). With W = N / M this is the
Universal Scalability Law (Gunther, Guerrilla Capacity Planning, 2007) for durations: with r = t + s + k, the duration
of a run on one node, sigma = (s + k) / r and kappa = k / r. All coefficients are at least 0.

Durations of runs differ, and the slowest of more runs takes longer: with lognormal durations of spread v (the standard
deviation of their logarithm) exp(v z) times the median of one, in the median, where z is the normal quantile of
2 ** (-1 / N). Laws with stragglers have this factor on c and in place of the 1 under the root.

Where steps also run on m nodes that the tests did not count (another pool that they tolerate), W has M + m for M.

`harness.analysis.capacity.fit` weights the laws.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from harness.analysis.capacity.caps import Cap
from harness.analysis.timeline import Floats

SERVICE = "service"
LINEAR, AMDAHL, USL = "linear", "amdahl", "usl"
TERMS_OF = {LINEAR: 2, AMDAHL: 3, USL: 4}
TERMS = ("start-up", "nodes", "contention", "coherency")


@dataclass(frozen=True, slots=True)
class Observation:
    """One test: `runs` runs on `nodes` nodes took `duration_s` seconds.

    `steady` marks a stretch from the middle of a test, without ramp-up and drain.
    """

    runs: float
    nodes: float
    duration_s: float
    steady: bool = False


@dataclass(frozen=True, slots=True)
class Law:
    """How work becomes time.

    Attributes:
        scaling: which terms there are.
        jobs_per_node: how many runs fill a node; none is any number.
        waves: whether they start and end together.
        others: nodes beside those counted that take steps, too.
        spread: of the runs' durations (standard deviation of the logarithm); 0 where the slowest is as quick as any.
    """

    scaling: str
    jobs_per_node: int | None = None
    waves: bool = True
    others: float = 0.0
    spread: float = 0.0

    @property
    def name(self) -> str:
        """The law as text: ``waves of 3 per node``, ``service, usl``, ``service on 2 more nodes``."""
        how = "waves" if self.waves and self.jobs_per_node else SERVICE
        if self.jobs_per_node:
            how += f" of {self.jobs_per_node} per node"
        if self.others:
            how += f" on {self.others:g} more nodes"
        further = ([] if self.scaling == LINEAR else [self.scaling]) + (["stragglers"] if self.spread else [])
        return ", ".join((how, *further))

    def features(self, runs: Floats, nodes: Floats) -> Floats:
        """The factors of the coefficients, stacked last: (…, number of terms)."""
        work = runs / (nodes + self.others)
        slowest = self._slowest(runs) * np.ones_like(work)
        if self.jobs_per_node is not None:
            full = work / self.jobs_per_node
            work = np.ceil(full - 1e-9) if self.waves else np.hypot(slowest, full)
        columns = (slowest, work, runs, runs * nodes)
        return np.stack(columns[: TERMS_OF[self.scaling]], axis=-1)

    def _slowest(self, runs: Floats) -> Floats:
        """The slowest of that many runs, as a multiple of the median run duration."""
        from scipy.special import ndtri

        return np.asarray(np.exp(self.spread * ndtri(0.5 ** (1 / runs))), dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """Plausible platforms under one law.

    Attributes:
        law: how work becomes time.
        coefficients: of the law, (B, terms).
        noise: the next test's relative deviation from its expectation, for a test that takes `reference_s`, (B,).
        power: how noise grows with the duration: 1 in proportion, 0 not at all.
        reference_s: the geometric mean of the fitted durations.
    """

    law: Law
    coefficients: Floats
    noise: Floats
    power: float
    reference_s: float

    def durations(self, runs: Floats, nodes: Floats) -> Floats:
        """Seconds of the next test by draw, shape (B, points)."""
        expected = self.coefficients @ self.law.features(runs, nodes).T
        relative = self.noise[:, None] * (expected / self.reference_s) ** (self.power - 1)
        # Stragglers skew durations: exp(x), continued by its tangent where less work would otherwise take longer.
        factor = np.where(relative < 1, np.exp(np.minimum(relative, 1.0)), np.e * relative)
        return np.asarray(expected * factor, dtype=np.float64)

    def explained(self, runs: float, *, shared: bool) -> "Draws":
        """The same durations at `runs` runs, with all that more nodes do not shorten at a shared resource, or none."""
        terms = max(self.coefficients.shape[1], TERMS_OF[AMDAHL])
        parts = np.zeros((self.coefficients.shape[0], terms))
        parts[:, : self.coefficients.shape[1]] = self.coefficients
        rest = parts[:, 0] + parts[:, 2] * runs
        parts[:, 0], parts[:, 2] = (0.0, rest / runs) if shared else (rest, 0.0)
        scaling = AMDAHL if self.law.scaling == LINEAR else self.law.scaling
        return replace(self, law=replace(self.law, scaling=scaling), coefficients=parts)


@dataclass(frozen=True, slots=True)
class Range:
    """The range of the observations that a model was fitted on: (least, greatest)."""

    runs: tuple[float, float]
    nodes: tuple[float, float]
    duration_s: tuple[float, float]
    observations: int
    unit: str = "node"  # of what there are more or fewer: "replica" of a service

    @property
    def one_load(self) -> bool:
        """One number of runs on several numbers of nodes: overhead and a shared resource look the same."""
        return self.runs[0] == self.runs[1] and self.nodes[0] < self.nodes[1]


@dataclass(frozen=True, slots=True, eq=False)
class CapacityModel:
    """Runs ↔ time ↔ nodes.

    Attributes:
        draws: plausible platforms by law, the most probable first.
        weights: each law's posterior probability.
        fitted_on: the range of the observations.
        noise: typical relative deviation between equal tests.
        caps: known caps, which no number of nodes exceeds.
    """

    draws: tuple[Draws, ...]
    weights: dict[Law, float]
    fitted_on: Range
    noise: float
    caps: tuple[Cap, ...] = ()

    @property
    def law(self) -> Law:
        """The most probable law."""
        return max(self.weights, key=lambda law: self.weights[law])

    def durations(self, runs: Floats | float, nodes: Floats | float, levels: Sequence[float]) -> Floats:
        """Quantiles of the next test's duration in seconds, shape (levels, points)."""
        runs, nodes = np.broadcast_arrays(np.atleast_1d(runs).astype(float), np.atleast_1d(nodes).astype(float))
        free = self.without_caps(runs, nodes, levels)
        least_s = np.max([3600 * runs / cap.per_hour for cap in self.caps], axis=0, initial=0.0)
        return np.asarray(np.maximum(free, np.outer(self._deviations(levels), least_s)), dtype=np.float64)

    def _deviations(self, levels: Sequence[float]) -> Floats:
        """Quantiles of the next test's time over that of a cap, which one test showed."""
        from scipy.special import ndtri

        return np.asarray(np.exp(np.sqrt(2) * self.noise * ndtri(levels)), dtype=np.float64)

    def without_caps(self, runs: Floats, nodes: Floats, levels: Sequence[float]) -> Floats:
        """The same as if nothing but the fitted laws held runs back.

        Where the tests can't distinguish overhead from a shared resource, the interval holds both explanations.
        """
        every = np.concatenate([drawn.durations(runs, nodes) for drawn in self.draws])
        found = np.quantile(every, levels, axis=0)
        if self.fitted_on.one_load:
            both = [
                np.concatenate(
                    [d.explained(self.fitted_on.runs[0], shared=s).durations(runs, nodes) for d in self.draws]
                )
                for s in (False, True)
            ]
            for k, level in enumerate(levels):
                if level != 0.5:
                    end = np.minimum(*both) if level < 0.5 else np.maximum(*both)
                    found[k] = np.quantile(end, level, axis=0)
        return np.asarray(found, dtype=np.float64)

    def binding_cap(self, runs: float, nodes: float) -> Cap | None:
        """The cap that decides the time of this test; none where the nodes, or what was fitted, do."""
        if not self.caps:
            return None
        slowest = max(self.caps, key=lambda cap: cap.least_s(runs))
        free = float(self.without_caps(np.array([runs]), np.array([nodes]), (0.5,))[0, 0])
        return slowest if slowest.least_s(runs) > free else None

    def shares(self, runs: float, nodes: float) -> dict[str, float]:
        """How much of the time at this size each of TERMS takes, on average over the draws."""
        total = np.zeros(len(TERMS))
        for drawn in self.draws:
            parts = drawn.coefficients * drawn.law.features(np.array(runs), np.array(nodes))
            total[: parts.shape[1]] += (parts / parts.sum(axis=1, keepdims=True)).sum(axis=0)
        return dict(zip(TERMS, (total / total.sum()).tolist(), strict=True))

    def scaled(self, factor: float) -> "CapacityModel":
        """The same platform with work that takes `factor` times as long; the fixed overhead stays."""
        stretched = np.array([1.0, factor, factor, factor])
        draws = tuple(
            replace(d, coefficients=d.coefficients * stretched[: d.coefficients.shape[1]]) for d in self.draws
        )
        return replace(self, draws=draws)
