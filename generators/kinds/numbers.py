"""Numbers: uniform, normal, lognormal, quantiles, integer, zipf."""

import itertools
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from generators import portable
from generators.block import Block
from generators.columns import Column
from generators.kinds.kind import Definition, Independent, Kind, KindType
from generators.streams import Floats
from harness.documents import Place

_MAX_INTEGERS = 2**53


def _rounded(values: Floats, decimals: int | None) -> Column:
    """The rounded values. Overwrites `values`: every pass over memory counts with a million rows."""
    if decimals is not None:
        factor = 10.0**decimals
        values *= factor
        np.rint(values, out=values)
        values /= factor
    values += 0.0  # turns -0.0 into 0.0
    return Column(values)


def _decimals(definition: Definition, largest: float) -> int | None:
    """The number of decimals, or None where numbers of this size have fewer digits than that."""
    decimals: int | None = definition.get("decimals")
    return None if decimals is None or largest * 10.0**decimals > _MAX_INTEGERS else decimals


def _ends(definition: Definition, key: str, place: Place) -> tuple[float, float]:
    low, high = definition[key]
    if low > high:
        raise (place / key).error(f"the range starts at {low:g}, above its end {high:g}", "swap the two")
    return low, high


@dataclass(frozen=True, slots=True)
class Uniform(Independent):
    """Uniform in [low, high], rounded to `decimals`."""

    low: float
    high: float
    decimals: int | None = None

    main: ClassVar[str] = "range"
    monotone: ClassVar[bool] = True

    @classmethod
    def read(cls, definition: Definition, place: Place) -> Kind:
        """See `KindType.read`; range and decimals."""
        low, high = _ends(definition, "range", place)
        if not math.isfinite(high - low):
            raise (place / "range").error("the range is too wide for a number", "narrow it")
        return cls(low, high, _decimals(definition, max(abs(low), abs(high))))

    def draw(self, block: Block) -> Column:
        """The value ``low + u * (high - low)``."""
        values = block.uniform()
        values *= self.high - self.low
        values += self.low
        return _rounded(np.clip(values, self.low, self.high, out=values), self.decimals)


@dataclass(frozen=True, slots=True)
class Normal(Independent):
    """Normal with `mean` and `sd`, truncated (not clipped) to [low, high].

    With `exponential` the exponential of that: lognormal, with mean, sd and bounds of the logarithm.
    """

    mean: float
    sd: float
    low: float = -math.inf
    high: float = math.inf
    decimals: int | None = None
    exponential: bool = False

    monotone: ClassVar[bool] = True

    def draw(self, block: Block) -> Column:
        """The value ``mean + sd * quantile(u)``, with u between the probabilities of the bounds."""
        u = block.uniform()
        if math.isfinite(self.low) or math.isfinite(self.high):
            below, above = self._probability(self.low), self._probability(self.high)
            u = np.clip(below + u * (above - below), 2.0**-53, 1.0 - 2.0**-53)
        values = np.clip(self.mean + self.sd * portable.normal_quantile(u), self.low, self.high)
        return _rounded(portable.exp(values) if self.exponential else values, self.decimals)

    def _probability(self, bound: float) -> float:
        if math.isinf(bound):
            return 0.0 if bound < 0 else 1.0
        return float(portable.normal_cdf(np.array([(bound - self.mean) / self.sd]))[0])


def _bounded(kind: Normal, place: Place) -> Kind:
    if kind.low >= kind.high:
        raise place.error("min is not below max", "swap the two")
    away = min(abs(kind.low - kind.mean), abs(kind.high - kind.mean)) / kind.sd
    if not kind.low <= kind.mean <= kind.high and away > 6:
        raise place.error(
            "min and max allow only values more than 6 standard deviations away", "move the centre between min and max"
        )
    return kind


class NormalType:
    """``normal: [mean, sd]`` with min, max, decimals."""

    main = "mean_sd"

    @staticmethod
    def read(definition: Definition, place: Place) -> Kind:
        """See `KindType.read`; mean and standard deviation, as a pair or by name."""
        mean, sd = definition.get("mean_sd") or (definition["mean"], definition["sd"])
        if sd <= 0:
            raise place.error(f"the standard deviation is {sd:g}", "give one above 0")
        low, high = definition.get("min", -math.inf), definition.get("max", math.inf)
        return _bounded(Normal(mean, sd, low, high, _decimals(definition, abs(mean) + 9 * sd)), place)


class LognormalType:
    """``lognormal: [median, sigma]`` with min, max, decimals; sigma is the standard deviation of the logarithm."""

    main = "median_sigma"

    @staticmethod
    def read(definition: Definition, place: Place) -> Kind:
        """See `KindType.read`; median and sigma, as a pair or by name."""
        median, sigma = definition.get("median_sigma") or (definition["median"], definition["sigma"])
        if median <= 0 or sigma <= 0:
            raise place.error(f"median {median:g} and sigma {sigma:g}", "give both above 0")
        low, high = definition.get("min", 0), definition.get("max", math.inf)
        if high <= 0:
            raise place.error(f"max is {high:g}", "a lognormal value is above 0: give a max above 0")
        log_low = _log(low) if low > 0 else -math.inf
        log_high = _log(high) if math.isfinite(high) else math.inf
        centre = _log(median)
        decimals = _decimals(definition, math.exp(min(centre + 9 * sigma, 700.0)))
        return _bounded(Normal(centre, sigma, log_low, log_high, decimals, exponential=True), place)


def _log(x: float) -> float:
    return float(portable.log(np.array([float(x)]))[0])


@dataclass(frozen=True, slots=True)
class Integer(Independent):
    """Integers low, low + step, … up to high, equally likely; if `unique`, in random order."""

    low: int
    high: int
    step: int = 1
    unique: bool = False

    main: ClassVar[str] = "range"
    monotone: ClassVar[bool] = True

    @classmethod
    def read(cls, definition: Definition, place: Place) -> Kind:
        """See `KindType.read`; range, step and unique."""
        low, high = (int(end) for end in _ends(definition, "range", place))
        kind = cls(low, high, definition.get("step", 1), definition.get("unique", False))
        if kind.size > _MAX_INTEGERS or not -(2**63) <= low <= high < 2**63:
            raise (place / "range").error("the range has more than 2**53 integers", "narrow it, or use uuid")
        return kind

    @property
    def size(self) -> int:
        """The number of distinct values."""
        return (self.high - self.low) // self.step + 1

    def draw(self, block: Block) -> Column:
        """The value ``low + step * index``."""
        index = block.permuted(self.size) if self.unique else block.index_below(self.size)
        return Column(self.low + index * self.step)


@dataclass(frozen=True, slots=True)
class Quantiles(Independent):
    """The distribution with these quantiles, at equal steps of probability from 0 to 1, interpolated linearly."""

    points: tuple[float, ...]
    decimals: int | None = None

    main: ClassVar[str] = "points"
    monotone: ClassVar[bool] = True

    @classmethod
    def read(cls, definition: Definition, place: Place) -> Kind:
        """See `KindType.read`; points and decimals."""
        points = definition["points"]
        if any(after < before for before, after in itertools.pairwise(points)):
            raise (place / "points").error("the quantiles are not ascending", "give them in ascending order")
        if not math.isfinite(points[-1] - points[0]):
            raise (place / "points").error("the range is too wide for a number", "narrow it")
        return cls(tuple(points), _decimals(definition, max(abs(points[0]), abs(points[-1]))))

    def draw(self, block: Block) -> Column:
        """Interpolated between the quantiles around u."""
        points = np.array(self.points, dtype=np.float64)
        place = block.uniform() * (len(points) - 1)
        left = np.minimum(place.astype(np.int64), len(points) - 2)
        # Not np.interp, which may fuse product and sum on some processors.
        return _rounded(points[left] + (place - left) * (points[left + 1] - points[left]), self.decimals)


@dataclass(frozen=True, slots=True)
class Zipf(Independent):
    """Ranks 1 … size, rank k with a probability proportional to k**-exponent: few are popular, most are rare."""

    size: int
    exponent: float

    main: ClassVar[str] = "size"
    monotone: ClassVar[bool] = True

    @classmethod
    def read(cls, definition: Definition, place: Place) -> Kind:  # noqa: ARG003  # the schema has checked it
        """See `KindType.read`; size and exponent."""
        return cls(definition["size"], float(definition.get("exponent", 1.1)))

    def draw(self, block: Block) -> Column:
        """The rank at u's share of the cumulative weight."""
        cumulative = np.cumsum(portable.exp(-self.exponent * portable.log(np.arange(1.0, self.size + 1.0))))
        rank = np.searchsorted(cumulative, block.uniform() * cumulative[-1], side="right")
        return Column(np.minimum(rank, self.size - 1).astype(np.int64) + 1)


KINDS: dict[str, KindType] = {
    "uniform": Uniform,
    "normal": NormalType,
    "lognormal": LognormalType,
    "integer": Integer,
    "quantiles": Quantiles,
    "zipf": Zipf,
}
