"""Runs, time, nodes: any two give the third, with an interval that says how sure the data make it.

The time that N runs take on M nodes is taken to be

    D(N, M) = c + t W(N, M) + s N + k N M

c is what every test costs whatever its size (scale-up, the last run's way home); W the work of one node: N / M where
runs flow through (service), sqrt(1 + (N / (M j))^2) where they do and j of them fill a node (fewer take the time of
one), or the number of waves ceil(N / (M j)) where j start and end together; s the time of something that all nodes
share (contention: an API server, a store), k what each node costs all others (coherency). With W = N / M this is the
Universal Scalability Law (Gunther, Guerrilla Capacity Planning, 2007) written for times: with r = t + s + k, the time
of a run on one node, sigma = (s + k) / r and kappa = k / r. All coefficients
are at least 0.

Which of these laws holds is not decided but weighed: each gets its posterior probability, from the evidence of a linear
Gaussian model (Bishop, Pattern Recognition and Machine Learning, 3.5) over a grid of noise levels. Coefficients are
drawn by perturbing the data and the prior and fitting again, no coefficient below 0 (randomize-then-optimize, Bardsley
et al., SIAM J. Sci. Comput. 36, 2014). Intervals are of the *next test's* result, noise included.

How equal tests differ is weighed, too: by the same share of any duration (a slow day), or by a share that falls with it
(the last straggler's seconds). The deviation is noise * D ** power * reference ** (1 - power), the power-of-the-mean
model (Carroll and Ruppert, Transformation and Weighting in Regression, 1988).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from harness.analysis.timeline import Floats, Ints

SERVICE = "service"
LINEAR, AMDAHL, USL = "linear", "amdahl", "usl"
_TERMS = {LINEAR: 2, AMDAHL: 3, USL: 4}
TERMS = ("start-up", "nodes", "contention", "coherency")

# Prior: of the largest test's duration, work is nearly all, give or take; each other term little, give or take.
_SHARE = np.array([0.0, 1.0, 0.0, 0.0])
_SHARE_DEVIATION = np.array([0.3, 0.5, 0.3, 0.3])
# Repeated tests differ by some 10 %, give or take a factor of two: what few rows can't say.
_USUAL_NOISE, _NOISE_FACTOR = 0.1, 2.0
_NOISES = np.geomspace(0.004, 0.5, 25)
_POWERS = {0.5: 0.4, 1.0: 0.6}  # with how likely each is beforehand
_JOBS = (*range(1, 17), 20, 24, 28, 32, 40, 48, 56, 64)
_FILLING = (2, 4, 8, 16, 32)  # runs that fill a node: the curve hardly differs between these


@dataclass(frozen=True, slots=True)
class Observation:
    """One test: so many runs on so many nodes took `duration_s`.

    `steady` marks a stretch cut out of a test's middle, without its beginning and end.
    """

    runs: float
    nodes: float
    duration_s: float
    steady: bool = False


@dataclass(frozen=True, slots=True)
class Law:
    """Which terms there are, how many runs fill a node (none: any number does), and whether they come in waves."""

    scaling: str
    jobs_per_node: int | None = None
    waves: bool = True

    @property
    def name(self) -> str:
        """For people: ``waves of 3 a node``, ``service of 4 a node``, ``service, usl``."""
        how = "waves" if self.waves and self.jobs_per_node else SERVICE
        if self.jobs_per_node:
            how += f" of {self.jobs_per_node} a node"
        return how if self.scaling == LINEAR else f"{how}, {self.scaling}"

    def features(self, runs: Floats, nodes: Floats) -> Floats:
        """What the coefficients are multiplied with, stacked last: (…, number of terms)."""
        work = runs / nodes
        if self.jobs_per_node is not None:
            full = work / self.jobs_per_node
            work = np.ceil(full - 1e-9) if self.waves else np.hypot(1.0, full)
        columns = (np.ones_like(work), work, runs, runs * nodes)
        return np.stack(columns[: _TERMS[self.scaling]], axis=-1)


@dataclass(frozen=True, slots=True, eq=False)
class Draws:
    """Plausible platforms under one law.

    Attributes:
        law: how work becomes time.
        coefficients: of the law, (B, terms).
        noise: how far the next test is from its expectation, relative to one that takes `reference_s`, (B,).
        power: how noise grows with the duration: 1 in proportion, 0 not at all.
        reference_s: the geometric mean of what was fitted.
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
        # Stragglers make it skew: exp(x), and its tangent where exp would make less work take longer.
        factor = np.where(relative < 1, np.exp(np.minimum(relative, 1.0)), np.e * relative)
        return np.asarray(expected * factor, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class Range:
    """What the model was fitted on."""

    runs: tuple[float, float]
    nodes: tuple[float, float]
    duration_s: tuple[float, float]
    observations: int


@dataclass(frozen=True, slots=True, eq=False)
class CapacityModel:
    """Runs ↔ time ↔ nodes.

    Attributes:
        draws: plausible platforms, by law, the likeliest first.
        weights: each law's posterior probability.
        fitted_on: the range of the observations.
        noise: typical relative deviation between equal tests.
    """

    draws: tuple[Draws, ...]
    weights: dict[Law, float]
    fitted_on: Range
    noise: float

    @property
    def law(self) -> Law:
        """The likeliest law."""
        return max(self.weights, key=lambda law: self.weights[law])

    def durations(self, runs: Floats | float, nodes: Floats | float, levels: Sequence[float]) -> Floats:
        """Quantiles of the next test's duration in seconds, shape (levels, points)."""
        runs, nodes = np.broadcast_arrays(np.atleast_1d(runs).astype(float), np.atleast_1d(nodes).astype(float))
        every = np.concatenate([drawn.durations(runs, nodes) for drawn in self.draws])
        return np.asarray(np.quantile(every, levels, axis=0), dtype=np.float64)

    def chance(self, runs: float, nodes: float, within_s: float) -> float:
        """The probability that the next test ends in time."""
        at = np.array([runs]), np.array([nodes])
        return float(np.mean(np.concatenate([drawn.durations(*at)[:, 0] for drawn in self.draws]) <= within_s))

    def shares(self, runs: float, nodes: float) -> dict[str, float]:
        """How much of the time at this size each of TERMS takes, on average over the draws."""
        total = np.zeros(len(TERMS))
        for drawn in self.draws:
            parts = drawn.coefficients * drawn.law.features(np.array(runs), np.array(nodes))
            total[: parts.shape[1]] += (parts / parts.sum(axis=1, keepdims=True)).sum(axis=0)
        return dict(zip(TERMS, (total / total.sum()).tolist(), strict=True))

    def scaled(self, factor: float) -> "CapacityModel":
        """The same platform with every unit of work taking `factor` times as long; what is fixed stays."""
        stretched = np.array([1.0, factor, factor, factor])
        draws = tuple(
            replace(d, coefficients=d.coefficients * stretched[: d.coefficients.shape[1]]) for d in self.draws
        )
        return replace(self, draws=draws)


def fit(
    observations: Sequence[Observation],
    random: np.random.Generator,
    *,
    jobs_per_node: int | None = None,
    count: int = 2000,
) -> CapacityModel:
    """Weigh all laws by the observations and draw `count` plausible platforms; one observation is enough to begin.

    Args:
        observations: tests of the same platform and pipeline.
        random: the source of the draws.
        jobs_per_node: when it is known, waves are only of this size.
        count: how many draws; intervals settle at some thousand.

    Raises:
        ValueError: there is no observation, or one has a size or duration that is not above 0.
    """
    if not observations:
        raise ValueError("a capacity model needs at least one observation")
    if any(min(o.runs, o.nodes, o.duration_s) <= 0 for o in observations):
        raise ValueError("runs, nodes and durations are above 0")
    laws, prior = _laws(observations, jobs_per_node)
    problems = [_Problem.of(law, power, observations) for law in laws for power in _POWERS]
    log_prior = np.log(np.outer(prior, list(_POWERS.values()))).reshape(-1, 1) + _log_noise_prior()
    log_posterior = np.array([p.log_evidence() for p in problems]) + log_prior
    posterior = np.exp(log_posterior - log_posterior.max())
    posterior /= posterior.sum()
    chosen = random.multinomial(count, posterior.ravel()).reshape(posterior.shape)
    by_law = posterior.reshape(len(laws), -1).sum(axis=1)
    weights = {law: float(weight) for law, weight in zip(laws, by_law, strict=True) if weight > 1e-4}
    order = sorted(range(len(problems)), key=lambda k: -posterior[k].sum())
    return CapacityModel(
        tuple(problems[k].draw(chosen[k], random) for k in order if chosen[k].any()),
        weights,
        _range(observations),
        float(np.exp(posterior.sum(axis=0) @ np.log(_NOISES))),
    )


def _laws(observations: Sequence[Observation], jobs_per_node: int | None) -> tuple[list[Law], Floats]:
    """All laws, and how likely each is beforehand: a third service, a third filling, a third waves."""
    most = max(o.runs / o.nodes for o in observations)
    possible = ((jobs_per_node,), (jobs_per_node,)) if jobs_per_node else (_FILLING, _JOBS)
    filling, jobs = ([j for j in each if j < max(2 * most, 1.5) or j == jobs_per_node] for each in possible)
    families = ([(None, False)], [(j, False) for j in filling], [(j, True) for j in jobs])
    kinds = [(*kind, 1 / len(family)) for family in families for kind in family]
    laws = [(Law(scaling, j, waves), share) for j, waves, share in kinds for scaling in _TERMS]
    prior = np.array([share for _, share in laws])
    return [law for law, _ in laws], np.asarray(prior / prior.sum(), dtype=np.float64)


def _range(observations: Sequence[Observation]) -> Range:
    columns = np.array([(o.runs, o.nodes, o.duration_s) for o in observations])
    low, high = columns.min(axis=0).tolist(), columns.max(axis=0).tolist()
    return Range((low[0], high[0]), (low[1], high[1]), (low[2], high[2]), len(observations))


def _log_noise_prior() -> Floats:
    return np.asarray(-0.5 * (np.log(_NOISES / _USUAL_NOISE) / np.log(_NOISE_FACTOR)) ** 2, dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class _Problem:
    """A law's regression, weighed so that noise is equal: `design` @ shares ≈ `target`.

    Shares are in units of their prior deviation; `scale` brings one back to the law's coefficient. A row's unit is
    what noise is relative to: `weight_s`, which is the duration itself where `power` is 1.
    """

    law: Law
    power: float
    design: Floats  # (n, k)
    target: Floats  # (n,)
    weight_s: Floats  # (n,)
    prior: Floats  # (k,)
    scale: Floats  # (k,)

    @property
    def reference_s(self) -> float:
        """The geometric mean of the weights, which is that of the durations fitted."""
        return float(np.exp(np.log(self.weight_s).mean()))

    @classmethod
    def of(cls, law: Law, power: float, observations: Sequence[Observation]) -> "_Problem":
        runs, nodes, took = np.array([(o.runs, o.nodes, o.duration_s) for o in observations]).T
        steady = np.array([o.steady for o in observations])
        features = law.features(runs, nodes)
        features[steady, 0] = 0.0
        # The unit of a coefficient: what makes its term the whole duration of the largest test.
        largest = int(np.argmax(nodes * runs))
        reference = law.features(runs[largest], np.maximum(nodes[largest], 2.0))
        deviation = _SHARE_DEVIATION[: features.shape[1]]
        scale = deviation * took[largest] / reference
        prior = _SHARE[: features.shape[1]] / deviation
        weighted = cls(law, 1.0, features * scale / took[:, None], np.ones(took.size), took, prior, scale)
        # Weighing by what was measured favours what came out short: once more, by what was fitted.
        shares = weighted.solve(weighted.target[:, None], prior[:, None], _USUAL_NOISE)[:, 0]
        fitted = took * (weighted.design @ shares)
        fitted = np.clip(fitted, took / 3, took * 3)
        weight_s = fitted**power * np.exp(np.log(fitted).mean()) ** (1 - power)
        return cls(law, power, features * scale / weight_s[:, None], took / weight_s, weight_s, prior, scale)

    def log_evidence(self) -> Floats:
        """By noise level: log density of the durations under the prior, up to a constant."""
        rest = self.target - self.design @ self.prior
        eigenvalues, vectors = np.linalg.eigh(self.design.T @ self.design)
        along = vectors.T @ (self.design.T @ rest)
        variance = _NOISES[:, None] ** 2
        spread = variance + np.maximum(eigenvalues, 0.0)
        quadratic = (rest @ rest - (along**2 / spread).sum(axis=1)) / variance[:, 0]
        determinant = (rest.size - eigenvalues.size) * np.log(variance[:, 0]) + np.log(spread).sum(axis=1)
        return np.asarray(-0.5 * (quadratic + determinant) - np.log(self.weight_s).sum(), dtype=np.float64)

    def solve(self, targets: Floats, priors: Floats, noise: float) -> Floats:
        """Shares of at least 0 that minimise the penalised squares, for all columns at once: (k, B)."""
        gram = self.design.T @ self.design / noise**2 + np.eye(self.prior.size)
        right = self.design.T @ targets / noise**2 + priors
        best, cost = np.zeros_like(right), np.zeros(right.shape[1])
        for size in range(1, self.prior.size + 1):
            for free in combinations(range(self.prior.size), size):
                rows: Ints = np.array(free)
                found = np.linalg.solve(gram[np.ix_(rows, rows)], right[rows])
                gain = -(found * right[rows]).sum(axis=0)  # of the objective at a stationary point, doubled
                better = (found >= 0).all(axis=0) & (gain < cost)
                cost[better] = gain[better]
                best[:, better] = 0.0
                best[np.ix_(rows, better)] = found[:, better]
        return best

    def draw(self, counts: Ints, random: np.random.Generator) -> Draws:
        """So many draws at each noise level."""
        found, noises = [], []
        for noise, count in zip(_NOISES.tolist(), counts.tolist(), strict=True):
            if not count:
                continue
            targets = self.target[:, None] + noise * random.standard_normal((self.target.size, count))
            priors = self.prior[:, None] + random.standard_normal((self.prior.size, count))
            shares = self.solve(targets, priors, noise).T
            possible = shares.any(axis=1)  # nothing takes no time
            found.append(shares[possible] * self.scale)
            noises.append(noise * random.standard_normal(count)[possible])
        return Draws(self.law, np.concatenate(found), np.concatenate(noises), self.power, self.reference_s)
