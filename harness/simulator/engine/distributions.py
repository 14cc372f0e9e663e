"""Durations, sizes and usages of simulated steps: a distribution, perhaps scaled by a run's parameter.

In a profile: ``2s`` · ``{uniform: [1s, 4s]}`` · ``{exponential: {mean: 3s}}`` · ``{lognormal: {median: 2s, p95: 6s}}``,
each also with ``parameter``, ``per`` and ``power``: the value is multiplied by ``(parameter / per) ** power``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import exp, log
from random import Random
from typing import Protocol

_Z95 = 1.6448536269514722  # the standard normal's 95th percentile
_MOST = 1e6  # times longer or larger: whoever sends a test's parameters may send anything


class Distribution(Protocol):
    """A non-negative random quantity."""

    @property
    def mean(self) -> float:
        """Its expected value."""
        ...

    def sample(self, random: Random) -> float:
        """One draw."""
        ...


@dataclass(frozen=True, slots=True)
class Fixed:
    """Always `value`."""

    value: float

    @property
    def mean(self) -> float:
        """The value."""
        return self.value

    def sample(self, random: Random) -> float:  # noqa: ARG002  # nothing random in it
        """The value."""
        return self.value


@dataclass(frozen=True, slots=True)
class Uniform:
    """Evenly between `low` and `high`."""

    low: float
    high: float

    @property
    def mean(self) -> float:
        """Half-way."""
        return (self.low + self.high) / 2

    def sample(self, random: Random) -> float:
        """One draw."""
        return self.low + (self.high - self.low) * random.random()


@dataclass(frozen=True, slots=True)
class Exponential:
    """Without memory: for arrivals, evictions, and stations of queueing theory."""

    mean: float

    def sample(self, random: Random) -> float:
        """One draw."""
        return -log(1.0 - random.random()) * self.mean


@dataclass(frozen=True, slots=True)
class Lognormal:
    """Most near `median`, few far above it: the usual shape of step durations. `p95` is the 95th percentile."""

    median: float
    p95: float
    _sigma: float = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_sigma", log(self.p95 / self.median) / _Z95)

    @property
    def mean(self) -> float:
        """``median * exp(sigma² / 2)``."""
        return self.median * exp(self._sigma**2 / 2)

    def sample(self, random: Random) -> float:
        """One draw."""
        return self.median * exp(self._sigma * random.gauss(0.0, 1.0))


@dataclass(frozen=True, slots=True)
class Amount:
    """A distribution, scaled by ``(parameter / per) ** power`` where the run has a numeric parameter of that name."""

    distribution: Distribution
    parameter: str = ""
    per: float = 1.0
    power: float = 1.0

    def sample(self, random: Random, parameters: Mapping[str, object]) -> float:
        """One draw for a run with these parameter values."""
        drawn = self.distribution.sample(random)
        return drawn * self.scale(parameters) if self.parameter else drawn

    def scale(self, parameters: Mapping[str, object]) -> float:
        """The factor that a run's parameter contributes, a million at most: 1 where it has none, or not a number."""
        given = parameters.get(self.parameter)
        if isinstance(given, bool) or not isinstance(given, int | float) or not given > 0:
            return 1.0
        try:
            return min(float((given / self.per) ** self.power), _MOST)
        except OverflowError:
            return _MOST


def fixed(value: float) -> Amount:
    """An amount that does not vary."""
    return Amount(Fixed(value))


# What follows reads the forms a profile may use; `number` understands the unit (a duration, a quantity).
Number = Callable[[str | float], float]
_SCALING = ("parameter", "per", "power")
FORMS = "write 2s, {uniform: [1s, 4s]}, {exponential: {mean: 3s}} or {lognormal: {median: 2s, p95: 6s}}"


def parse_amount(given: object, number: Number) -> Amount:
    """Understand one of the forms above.

    Raises:
        ValueError: it is none of them; the text says why.
    """
    if isinstance(given, str | int | float) and not isinstance(given, bool):
        return fixed(_checked(number(given)))
    if not isinstance(given, Mapping):
        raise ValueError(f"{given!r} is no amount")  # noqa: TRY004  # a wrong document, not a wrong call
    kinds = [key for key in given if key not in _SCALING]
    if len(kinds) != 1:
        raise ValueError(f"it names {len(kinds)} distributions" + (f" ({', '.join(map(str, kinds))})" if kinds else ""))
    distribution = _distribution(str(kinds[0]), given[kinds[0]], number)
    parameter = str(given.get("parameter", ""))
    if not parameter and ("per" in given or "power" in given):
        raise ValueError("'per' and 'power' need a 'parameter' to scale by")
    return Amount(distribution, parameter, float(given.get("per", 1.0)), float(given.get("power", 1.0)))


def _distribution(kind: str, given: object, number: Number) -> Distribution:
    if kind == "fixed" and isinstance(given, str | int | float):
        return Fixed(_checked(number(given)))
    if kind == "uniform" and isinstance(given, list) and len(given) == 2:
        low, high = (_checked(number(each)) for each in given)
        if low > high:
            raise ValueError(f"uniform from {given[0]} to {given[1]} is upside down")
        return Uniform(low, high)
    if kind == "exponential" and isinstance(given, Mapping) and set(given) == {"mean"}:
        return Exponential(_checked(number(given["mean"])))
    if kind == "lognormal" and isinstance(given, Mapping) and set(given) == {"median", "p95"}:
        median, p95 = (_checked(number(given[key])) for key in ("median", "p95"))
        if not 0 < median <= p95:
            raise ValueError("a lognormal needs 0 < median <= p95")
        return Lognormal(median, p95)
    raise ValueError(f"'{kind}' is no distribution, or lacks its values")


def _checked(value: float) -> float:
    if value < 0:
        raise ValueError(f"{value:g} is below 0")
    return value
