"""Durations, sizes and resource usage of simulated steps: a distribution, optionally scaled by a run's parameter.

In a profile: ``2s`` · ``{uniform: [1s, 4s]}`` · ``{exponential: {mean: 3s}}`` · ``{values: [2s, 2s, 9s]}`` ·
``{lognormal: {median: 2s, p95: 6s}}``, each also with ``parameter``, ``per`` and ``power``: the value is multiplied by
``(parameter / per) ** power``.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import exp, isfinite, log
from random import Random
from typing import Any

_Z95 = 1.6448536269514722  # the standard normal's 95th percentile
_MAX_SCALE = 1e6  # parameters come from the test and may have any value


@dataclass(frozen=True, slots=True)
class Fixed:
    """A constant: every draw is `value`."""

    value: float

    @property
    def mean(self) -> float:
        """The constant, which is its own expected value."""
        return self.value

    def sample(self, random: Random) -> float:  # noqa: ARG002  # nothing random in it
        """Return the constant; nothing random is drawn."""
        return self.value


@dataclass(frozen=True, slots=True)
class Uniform:
    """Uniform between `low` and `high`."""

    low: float
    high: float

    @property
    def mean(self) -> float:
        """The midpoint of the interval."""
        return (self.low + self.high) / 2

    def sample(self, random: Random) -> float:
        """Draw one value with the generator that is passed in."""
        return self.low + (self.high - self.low) * random.random()


@dataclass(frozen=True, slots=True)
class Exponential:
    """Memoryless: for arrivals, evictions, and the queues of queueing theory."""

    mean: float

    def sample(self, random: Random) -> float:
        """Draw one value with the generator that is passed in."""
        return -log(1.0 - random.random()) * self.mean


@dataclass(frozen=True, slots=True)
class Lognormal:
    """Most values near `median`, few far above it, as with step durations. `p95` is the 95th percentile."""

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
        """Draw one value with the generator that is passed in."""
        return self.median * exp(self._sigma * random.gauss(0.0, 1.0))


@dataclass(frozen=True, slots=True)
class Empirical:
    """One of the values that were measured, each as likely: a mixture stays a mixture."""

    values: tuple[float, ...]  # ascending, at least one

    @property
    def mean(self) -> float:
        """The mean of the values."""
        return sum(self.values) / len(self.values)

    def sample(self, random: Random) -> float:
        """Draw one value with the generator that is passed in."""
        return self.values[int(random.random() * len(self.values))]


# Of a non-negative random quantity.
Distribution = Fixed | Uniform | Exponential | Lognormal | Empirical


@dataclass(frozen=True, slots=True)
class Amount:
    """A distribution, scaled by ``(parameter / per) ** power`` where the run has a numeric parameter of that name."""

    distribution: Distribution
    parameter: str = ""
    per: float = 1.0
    power: float = 1.0

    def sample(self, random: Random, parameters: Mapping[str, object]) -> float:
        """Draw one value for a run with these parameters."""
        drawn = self.distribution.sample(random)
        return drawn * self.scale(parameters) if self.parameter else drawn

    def scale(self, parameters: Mapping[str, object]) -> float:
        """The factor from the run's parameter, at most a million; 1 without a positive number."""
        given = parameters.get(self.parameter)
        if isinstance(given, bool) or not isinstance(given, int | float) or not given > 0:
            return 1.0
        try:
            return min(float((given / self.per) ** self.power), _MAX_SCALE)
        except OverflowError:
            return _MAX_SCALE


def fixed(value: float) -> Amount:
    """An amount with a constant value."""
    return Amount(Fixed(value))


# Parsing of the forms above; `number` parses the unit (a duration, a quantity).
Number = Callable[[str | float], float]
_SCALING = ("parameter", "per", "power")
FORMS = (
    "write 2s, {uniform: [1s, 4s]}, {exponential: {mean: 3s}}, {values: [2s, 9s]} or {lognormal: {median: 2s, p95: 6s}}"
)


def parse_amount(given: object, number: Number) -> Amount:
    """Parse one of the forms in the module's docstring.

    Raises:
        ValueError: none of the forms; the message says why.
    """
    if isinstance(given, str | int | float) and not isinstance(given, bool):
        return fixed(_checked(number(given)))
    if not isinstance(given, Mapping):
        raise ValueError(f"{given!r} is not an amount")  # noqa: TRY004  # the document is wrong, not the call
    kinds = [key for key in given if key not in _SCALING]
    if len(kinds) != 1:
        raise ValueError(f"it names {len(kinds)} distributions" + (f" ({', '.join(map(str, kinds))})" if kinds else ""))
    distribution = _distribution(str(kinds[0]), given[kinds[0]], number)
    parameter = str(given.get("parameter", ""))
    if not parameter and ("per" in given or "power" in given):
        raise ValueError("'per' and 'power' need a 'parameter' to scale by")
    per, power = (_scaling(given, key) for key in ("per", "power"))
    if not per > 0:
        raise ValueError(f"'per' is {per:g}, but the parameter is divided by it")
    return Amount(distribution, parameter, per, power)


def _scaling(given: Mapping[Any, Any], key: str) -> float:
    """A number of the scaling by a parameter, 1 if it is not given."""
    value = given.get(key, 1.0)
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise ValueError(f"'{key}' is {value!r}, which is not a number")
    return float(value)


def _distribution(kind: str, given: object, number: Number) -> Distribution:
    if kind == "fixed" and isinstance(given, str | int | float):
        return Fixed(_checked(number(given)))
    if kind == "uniform" and isinstance(given, list) and len(given) == 2:
        low, high = (_checked(number(each)) for each in given)
        if low > high:
            raise ValueError(f"uniform from {given[0]} to {given[1]} is reversed: the lower bound comes first")
        return Uniform(low, high)
    if kind == "exponential" and isinstance(given, Mapping) and set(given) == {"mean"}:
        return Exponential(_checked(number(given["mean"])))
    if kind == "lognormal" and isinstance(given, Mapping) and set(given) == {"median", "p95"}:
        median, p95 = (_checked(number(given[key])) for key in ("median", "p95"))
        if not 0 < median <= p95:
            raise ValueError("a lognormal needs 0 < median <= p95")
        return Lognormal(median, p95)
    if kind == "values" and isinstance(given, list) and given:
        return Empirical(tuple(sorted(_checked(number(each)) for each in given)))
    raise ValueError(f"'{kind}' is not a distribution, or its values are missing or wrong")


def _checked(value: float) -> float:
    if not isfinite(value):
        raise ValueError(f"{value:g} is not a number")
    if value < 0:
        raise ValueError(f"{value:g} is below 0")
    return value


# --- random numbers that depend on what they are drawn for, and not on when: common random numbers -------------------
# A step computes as long on a platform with four times the nodes as on the one that it is compared with, whichever
# steps come before it there. What differs between two simulations with the same seed is then the platform's doing (Law,
# Simulation Modeling and Analysis, 5th ed., 11.2).


_BITS = 32  # of each part of a key


class Draws:
    """A random stream for each part of each run.

    Args:
        stream: the name of all streams together, with the simulation's seed.
    """

    def __init__(self, stream: str) -> None:
        self._base = Random(stream).getrandbits(_BITS)
        self._random = Random()

    def of(self, run: int, part: int, attempt: int) -> Random:
        """The stream of an attempt at a part of a run, from its beginning; valid until the next call.

        Args:
            run: its number, in the order of arrival.
            part: which of its steps; below 2 ** 32, as `run` and `attempt`.
            attempt: each has draws of its own.
        """
        self._random.seed((((self._base << _BITS | run) << _BITS | part) << _BITS) | attempt)
        return self._random
