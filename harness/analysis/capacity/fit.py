"""Fitting the capacity model to a number of tests.

The laws (`model`) are averaged, not selected: each gets its posterior probability from the evidence of a linear
Gaussian model (Bishop, Pattern Recognition and Machine Learning, 3.5) over a grid of noise levels. Coefficients are
drawn by perturbing the data and the prior and refitting, none below 0 (randomize-then-optimize, Bardsley et al., SIAM
J. Sci. Comput. 36, 2014). Intervals are prediction intervals: for the *next test's* result, noise included.

The variation between equal tests is averaged over two models as well: proportional to the duration (a slow day), or
growing more slowly (the last straggler's seconds). The deviation is noise * D ** power * reference ** (1 - power), the
power-of-the-mean model (Carroll and Ruppert, Transformation and Weighting in Regression, 1988).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from harness.analysis.capacity.caps import Cap
from harness.analysis.capacity.model import AMDAHL, LINEAR, TERMS_OF, USL, CapacityModel, Draws, Law, Observation, Range
from harness.analysis.timeline import Floats, Ints, evenly

# Prior: work takes nearly all of the largest test's duration and every other term little, each with a deviation.
_SHARE = np.array([0.0, 1.0, 0.0, 0.0])
_SHARE_DEVIATION = np.array([0.3, 0.5, 0.3, 0.3])
# Prior: repeated tests differ by 10 %, within a factor of two. A few observations can't determine that.
_USUAL_NOISE, _NOISE_FACTOR = 0.1, 2.0
_MOST_OFF = 3.0  # an observation's weight is its duration or the fitted one, within this factor of it
_NOISES = np.geomspace(0.004, 0.5, 25)
_POWERS = {0.5: 0.4, 1.0: 0.6}  # with their prior probabilities
_JOBS = (*range(1, 17), 20, 24, 28, 32, 40, 48, 56, 64)
_OTHERS = 0.3  # odds of each kind of work with nodes that the tests did not count
_MORE = (0.5, 1.0, 2.0, 4.0, 8.0)  # such nodes
_SPREAD = 0.3  # of the durations of runs of one load, where they differ: as likely as not
_FILLING = (2, 4, 8, 16, 32)  # runs that fill a node: the curve hardly differs between these


def fit(
    observations: Sequence[Observation],
    random: np.random.Generator,
    *,
    jobs_per_node: int | None = None,
    count: int = 2000,
    caps: Sequence[Cap] = (),
    unit: str = "node",
) -> CapacityModel:
    """Weight all laws by the observations and draw `count` plausible platforms; a single observation suffices.

    Args:
        observations: tests of the same platform and pipeline.
        random: the source of the draws.
        jobs_per_node: the only wave size to consider, when it is known.
        count: the number of draws; intervals are stable from about a thousand.
        caps: known caps of the platform.
        unit: what `Observation.nodes` counts.

    Raises:
        ValueError: there is no observation, or one has a size or duration that is not above 0.
    """
    if not observations:
        raise ValueError("a capacity model needs at least one observation")
    if any(min(o.runs, o.nodes, o.duration_s) <= 0 for o in observations):
        raise ValueError("runs, nodes and durations must be above 0")
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
        _range(observations, unit),
        float(np.exp(posterior.sum(axis=0) @ np.log(_NOISES))),
        tuple(caps),
    )


def _laws(observations: Sequence[Observation], jobs_per_node: int | None) -> tuple[list[Law], Floats]:
    """All laws with their prior probabilities: a third each for service, filling and waves, others by their odds."""
    most = max(o.runs / o.nodes for o in observations)
    possible = ((jobs_per_node,), (jobs_per_node,)) if jobs_per_node else (_FILLING, _JOBS)
    filling, jobs = ([j for j in each if j < max(2 * most, 1.5) or j == jobs_per_node] for each in possible)
    families = ([(None, False)], [(j, False) for j in filling], [(j, True) for j in jobs])
    kinds = [(*kind, 1 / len(family)) for family in families for kind in family]
    laws = [(Law(scaling, j, waves), share) for j, waves, share in kinds for scaling in TERMS_OF]
    # One number of runs can't tell them from the other explanations of what more nodes do not shorten.
    several = len({o.runs for o in observations}) > 1
    flowing = [(j, share) for j, waves, share in kinds if several and not waves]
    laws += [
        (Law(scaling, j, waves=False, others=more), _OTHERS * share / len(_MORE))
        for j, share in flowing
        for scaling in (LINEAR, AMDAHL)
        for more in _MORE
    ]
    laws += [
        (replace(law, spread=_SPREAD), share)
        for law, share in laws
        if several and not law.waves and not law.others and law.scaling != USL
    ]
    prior = np.array([share for _, share in laws])
    return [law for law, _ in laws], np.asarray(prior / prior.sum(), dtype=np.float64)


def _range(observations: Sequence[Observation], unit: str) -> Range:
    columns = np.array([(o.runs, o.nodes, o.duration_s) for o in observations])
    low, high = columns.min(axis=0).tolist(), columns.max(axis=0).tolist()
    return Range((low[0], high[0]), (low[1], high[1]), (low[2], high[2]), len(observations), unit)


def _log_noise_prior() -> Floats:
    return np.asarray(-0.5 * (np.log(_NOISES / _USUAL_NOISE) / np.log(_NOISE_FACTOR)) ** 2, dtype=np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class _Problem:
    """A law's regression, weighted to equal noise: `design` @ shares ≈ `target`.

    Shares are in units of their prior deviation; `scale` converts one to the law's coefficient. A row is divided by its
    noise's unit `weight_s`, which is the duration itself where `power` is 1.
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
        # The unit of a coefficient makes its term equal the whole duration of the largest test.
        largest = int(np.argmax(nodes * runs))
        reference = law.features(runs[largest], np.maximum(nodes[largest], 2.0))
        deviation = _SHARE_DEVIATION[: features.shape[1]]
        scale = deviation * took[largest] / reference
        prior = _SHARE[: features.shape[1]] / deviation
        # Weighting by measured durations favours short ones: weight once more, by fitted durations.
        weighted = features * scale / took[:, None]
        shares = _solved(weighted, np.ones((took.size, 1)), prior[:, None], _USUAL_NOISE)[:, 0]
        fitted = np.clip(took * (weighted @ shares), took / _MOST_OFF, took * _MOST_OFF)
        weight_s = fitted**power * np.exp(np.log(fitted).mean()) ** (1 - power)
        return cls(law, power, features * scale / weight_s[:, None], took / weight_s, weight_s, prior, scale)

    def log_evidence(self) -> Floats:
        """The log density of the durations under the prior, by noise level, up to a constant."""
        rest = self.target - self.design @ self.prior
        eigenvalues, vectors = np.linalg.eigh(self.design.T @ self.design)
        along = vectors.T @ (self.design.T @ rest)
        variance = _NOISES[:, None] ** 2
        spread = variance + np.maximum(eigenvalues, 0.0)
        quadratic = (rest @ rest - (along**2 / spread).sum(axis=1)) / variance[:, 0]
        determinant = (rest.size - eigenvalues.size) * np.log(variance[:, 0]) + np.log(spread).sum(axis=1)
        return np.asarray(-0.5 * (quadratic + determinant) - np.log(self.weight_s).sum(), dtype=np.float64)

    def draw(self, counts: Ints, random: np.random.Generator) -> Draws:
        """`counts[k]` draws at the k-th noise level."""
        found, noises = [], []
        for noise, count in zip(_NOISES.tolist(), counts.tolist(), strict=True):
            if not count:
                continue
            targets = self.target[:, None] + noise * random.standard_normal((self.target.size, count))
            priors = self.prior[:, None] + random.standard_normal((self.prior.size, count))
            shares = _solved(self.design, targets, priors, noise).T
            possible = shares.any(axis=1)  # every test takes some time
            found.append(shares[possible] * self.scale)
            noises.append(noise * random.standard_normal(count)[possible])
        return Draws(self.law, np.concatenate(found), np.concatenate(noises), self.power, self.reference_s)


def _solved(design: Floats, targets: Floats, priors: Floats, noise: float) -> Floats:
    """Non-negative shares that minimise the penalised squares, for all columns at once: (k, B).

    The penalty is further rows. By QR decomposition, since squares of tests of very different sizes are singular.
    """
    whole, design = np.linalg.qr(np.vstack((design / noise, np.eye(len(priors)))))
    right = whole.T @ np.vstack((targets / noise, priors))
    best, explained = np.zeros_like(priors), np.zeros(right.shape[1])
    for size in range(1, len(priors) + 1):
        for free in combinations(range(len(priors)), size):
            rows: Ints = np.array(free)
            q, r = np.linalg.qr(design[:, rows])
            along = q.T @ right
            found, squares = np.linalg.solve(r, along), (along**2).sum(axis=0)
            better = (found >= 0).all(axis=0) & (squares > explained)
            explained[better] = squares[better]
            best[:, better] = 0.0
            best[np.ix_(rows, better)] = found[:, better]
    return best


_DRAWS = 400
_MOST_SIZES = 40


@dataclass(frozen=True, slots=True)
class Check:
    """Leave-one-out: `coverage` is the share of tests within their 90 % interval, `error` the median relative error."""

    sizes: int
    tests: int
    coverage: float
    error: float

    @property
    def sentence(self) -> str:
        """The result as text."""
        return (
            f"{self.sizes} sizes, each predicted from the others: {self.coverage:.0%} of {self.tests} tests within "
            f"the 90% interval, median error {self.error:.1%}"
        )


def leave_one_out(observations: Sequence[Observation], random: np.random.Generator) -> Check | None:
    """Predict each size from the others, for at most `_MOST_SIZES` evenly chosen ones; none with a single size.

    Raises:
        ValueError: an observation has a size or duration that is not above 0.
    """
    sizes = sorted({(o.runs, o.nodes) for o in observations})
    if len(sizes) < 2:
        return None
    chosen = [sizes[k] for k in evenly(len(sizes), _MOST_SIZES).tolist()]
    inside, errors = [], []
    for runs, nodes in chosen:
        model = fit([o for o in observations if (o.runs, o.nodes) != (runs, nodes)], random, count=_DRAWS)
        low, middle, high = model.durations(runs, nodes, (0.05, 0.5, 0.95))[:, 0]
        took = np.array([o.duration_s for o in observations if (o.runs, o.nodes) == (runs, nodes)])
        inside.extend((low <= took) & (took <= high))
        errors.extend(abs(middle / took - 1))
    return Check(len(chosen), len(inside), float(np.mean(inside)), float(np.median(errors)))
