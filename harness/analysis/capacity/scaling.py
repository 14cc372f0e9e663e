"""Throughput against nodes: linear, Amdahl's law, or the Universal Scalability Law, whichever the data support.

    X(n) = gamma n / (1 + sigma (n - 1) + kappa n (n - 1))

gamma is the throughput of one node, sigma the serial share (contention), kappa the cost of coherency (Gunther,
Guerrilla Capacity Planning, 2007). Amdahl's law has kappa = 0, linear scaling both 0. The law is selected by Akaike's
criterion for small samples (Hurvich and Tsai 1989); intervals come from a wild bootstrap of the residuals.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from harness.analysis.timeline import Bools, Floats

LINEAR, AMDAHL, USL = "linear", "amdahl", "usl"
_FREE = {LINEAR: 1, AMDAHL: 2, USL: 3}
_STEPS = 200
_NEARLY_ALL = 0.9
_STUCK = 1e8  # damping at which no step is an improvement


@dataclass(frozen=True, slots=True)
class Curve:
    """One law with its coefficients. Throughput is in the unit of the data."""

    law: str
    gamma: float
    sigma: float = 0.0
    kappa: float = 0.0

    def at(self, nodes: Floats | float) -> Floats:
        """The throughput on `nodes` nodes."""
        return _universal(np.asarray(nodes), self.gamma, self.sigma, self.kappa)

    def efficiency(self, nodes: Floats | float) -> Floats:
        """The throughput per node as a share of one node's."""
        return self.at(nodes) / (np.asarray(nodes) * self.gamma)

    @property
    def peak(self) -> float | None:
        """The nodes, at least one, beyond which throughput falls; none when it never does."""
        if self.sigma > 1:
            return 1.0
        return max(1.0, float(np.sqrt((1 - self.sigma) / self.kappa))) if self.kappa > 0 else None

    @property
    def limit(self) -> float | None:
        """The throughput that no number of nodes exceeds; none when it is unlimited."""
        if self.peak is not None:
            return float(self.at(self.peak))
        return self.gamma / self.sigma if self.sigma > 0 else None

    @property
    def enough(self) -> float | None:
        """The nodes, at least one, that give 90 % of the limit; none when there is no limit."""
        if self.limit is None:
            return None
        if self.limit * _NEARLY_ALL <= self.gamma:
            return 1.0
        # X(n) = 0.9 limit is a quadratic in n: kappa n² + (sigma - kappa - gamma / (0.9 limit)) n + 1 - sigma = 0.
        b = self.sigma - self.kappa - self.gamma / (_NEARLY_ALL * self.limit)
        if not self.kappa:
            return (1 - self.sigma) / -b
        return float((-b - np.sqrt(b * b - 4 * self.kappa * (1 - self.sigma))) / (2 * self.kappa))


@dataclass(frozen=True, slots=True)
class Interval:
    """A value and its bootstrap interval; an end is none where the resamples do not bound it."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, eq=False)
class Scaling:
    """The selected curve and its uncertainty.

    Attributes:
        curve: the law with the smallest AICc.
        criteria: AICc by law; infinite with too few points.
        enough: nodes that give 90 % of the limit.
        peak: nodes beyond which throughput falls.
        resampled: the coefficients of the resamples, shape (B, 3): gamma, sigma, kappa.
        fitted_on: smallest and largest number of nodes in the data.
    """

    curve: Curve
    criteria: dict[str, float]
    enough: Interval
    peak: Interval
    resampled: Floats
    fitted_on: tuple[float, float]

    def band(self, nodes: Floats, level: float = 0.9) -> tuple[Floats, Floats]:
        """The pointwise interval of throughput on `nodes` nodes, at `level`: (low, high)."""
        curves = _model(nodes, self.resampled)
        low, high = np.quantile(curves, ((1 - level) / 2, (1 + level) / 2), axis=0)
        return low, high


def fit(
    nodes: Floats, throughput: Floats, random: np.random.Generator, *, resamples: int = 400, law: str | None = None
) -> Scaling:
    """Fit the given law, or the one that AICc selects; one entry per measurement, at least three.

    Raises:
        ValueError: fewer than three measurements, or fewer than two different numbers of nodes.
    """
    if nodes.size < 3 or np.unique(nodes).size < 2:
        raise ValueError("a fit needs at least three measurements on two different numbers of nodes")
    fits = {law: _fit(nodes, throughput[None, :], law) for law in _FREE}
    criteria = {law: _aicc(nodes, throughput, fits[law][0], law) for law in _FREE}
    law = law or min(_FREE, key=lambda name: (criteria[name], _FREE[name]))
    best = fits[law][0]
    fitted = _model(nodes, best[None, :])[0]
    # Wild bootstrap: residuals get random signs and keep their sizes, as noise often grows with throughput.
    freedom = np.sqrt(nodes.size / max(nodes.size - _FREE[law], 1))
    signs = random.choice((-1.0, 1.0), size=(resamples, nodes.size))
    resampled = _fit(nodes, fitted + signs * (throughput - fitted) * freedom, law)
    curve = _curve(law, best)
    curves = [_curve(law, row) for row in resampled]
    return Scaling(
        curve,
        criteria,
        _interval(curve, curves, lambda c: c.enough),
        _interval(curve, curves, lambda c: c.peak),
        resampled,
        (float(nodes.min()), float(nodes.max())),
    )


def _curve(law: str, coefficients: Floats) -> Curve:
    gamma, sigma, kappa = (float(c) for c in coefficients)
    return Curve(law, gamma, sigma, kappa)


def _interval(curve: Curve, curves: list[Curve], of: Callable[[Curve], float | None]) -> Interval:
    """The 90 % interval over the resamples; one without a limit counts as infinite."""
    values = np.array([np.inf if of(c) is None else of(c) for c in curves], dtype=np.float64)
    low, high = np.quantile(values, (0.05, 0.95), method="inverted_cdf")
    return Interval(of(curve), float(low) if np.isfinite(low) else None, float(high) if np.isfinite(high) else None)


def _universal(nodes: Floats, gamma: Floats | float, sigma: Floats | float, kappa: Floats | float) -> Floats:
    """The Universal Scalability Law."""
    return np.asarray(gamma * nodes / (1 + sigma * (nodes - 1) + kappa * nodes * (nodes - 1)), dtype=np.float64)


def _model(nodes: Floats, coefficients: Floats) -> Floats:
    """Throughput of each row of coefficients, shape (B, n)."""
    return _universal(nodes, *(coefficients[:, k, None] for k in range(3)))


def _fit(nodes: Floats, throughput: Floats, law: str) -> Floats:
    """Non-negative least squares by Levenberg and Marquardt, for all rows at once: (B, 3)."""
    free = np.arange(3) < _FREE[law]
    at = np.zeros((throughput.shape[0], 3))
    # One node's throughput is at least the best throughput per node; contention starts from a guess.
    at[:, 0] = (throughput / nodes).max(axis=1)
    at[:, 1:] = np.where(free[1:], (0.05, 1e-4), 0.0)
    damping = np.full(at.shape[0], 1e-3)
    error = ((throughput - _model(nodes, at)) ** 2).sum(axis=1)
    for _ in range(_STEPS):
        residual, jacobian = throughput - _model(nodes, at), _jacobian(nodes, at)
        transposed = jacobian.transpose(0, 2, 1)
        slope = (transposed @ residual[:, :, None])[:, :, 0]
        # A coefficient at its bound whose step points below it stays fixed.
        moving: Bools = free & ((at > 0) | (slope > 0))
        curvature = (transposed @ jacobian) * (moving[:, :, None] & moving[:, None, :])
        diagonal = curvature.diagonal(axis1=1, axis2=2)
        lifted = np.where(moving, diagonal * damping[:, None] + 1e-300, 1.0)
        step = np.linalg.solve(curvature + lifted[:, :, None] * np.eye(3), (slope * moving)[:, :, None])[:, :, 0]
        tried = np.maximum(at + step, 0.0)
        tried_error = ((throughput - _model(nodes, tried)) ** 2).sum(axis=1)
        better = tried_error < error
        settled = np.where(better, error - tried_error <= 1e-13 * error, damping > _STUCK)
        at[better], error[better] = tried[better], tried_error[better]
        damping = np.clip(np.where(better, damping / 3, damping * 4), 1e-12, 1e12)
        if settled.all():
            break
    return at


def _jacobian(nodes: Floats, at: Floats) -> Floats:
    """Derivatives of the model with respect to gamma, sigma and kappa, shape (B, n, 3)."""
    gamma, sigma, kappa = (at[:, k, None] for k in range(3))
    share = nodes / (1 + sigma * (nodes - 1) + kappa * nodes * (nodes - 1))
    by_sigma = -gamma * share**2 * (nodes - 1) / nodes
    return np.stack((share, by_sigma, by_sigma * nodes), axis=2)


def _aicc(nodes: Floats, throughput: Floats, coefficients: Floats, law: str) -> float:
    count, parameters = nodes.size, _FREE[law] + 1  # the variance is a parameter, too
    if count - parameters - 1 <= 0:
        return np.inf
    error = float(((throughput - _model(nodes, coefficients[None, :])[0]) ** 2).sum())
    # A perfect fit would give minus infinity: rounding bounds the error from below.
    error = max(error, 1e-20 * float((throughput**2).sum()))
    correction = 2 * parameters * (parameters + 1) / (count - parameters - 1)
    return float(count * np.log(error / count) + 2 * parameters + correction)
