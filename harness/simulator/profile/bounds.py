"""The types of a profile's settings: numbers with a unit, with bounds, or both."""

from dataclasses import dataclass
from math import inf
from typing import Annotated

from harness.model.units import parse_duration, parse_quantity
from harness.simulator.engine.distributions import Amount


@dataclass(frozen=True, slots=True)
class Range:
    """A range of numbers; `open` excludes the least itself."""

    least: float
    most: float = inf
    open: bool = False

    def allows(self, value: object) -> bool:
        """Whether the value is a number in the range."""
        if not isinstance(value, int | float) or value > self.most:
            return False
        return value > self.least if self.open else value >= self.least

    def __str__(self) -> str:
        if self.most < inf:
            return f"a number from {self.least:g} to {self.most:g}"
        return f"a number above {self.least:g}" if self.open else f"{self.least:g} or more"


@dataclass(frozen=True, slots=True)
class OneOf:
    """A choice of texts."""

    values: tuple[str, ...]

    def allows(self, value: object) -> bool:
        """Whether the value is one of them."""
        return value in self.values

    def __str__(self) -> str:
        return f"one of: {', '.join(self.values)}"


ABOVE_0 = Range(0, open=True)
FROM_1 = Range(1)
SHARE = Range(0, 1)

Seconds = Annotated[float, parse_duration]
SomeSeconds = Annotated[float, parse_duration, ABOVE_0]
Cores = Annotated[float, parse_quantity]
SomeCores = Annotated[float, parse_quantity, ABOVE_0]
Bytes = Annotated[float, parse_quantity]
SomeBytes = Annotated[float, parse_quantity, ABOVE_0]
Rate = Annotated[float, ABOVE_0]  # per second
Share = Annotated[float, SHARE]
Count = Annotated[int, FROM_1]
DurationAmount = Annotated[Amount, parse_duration]  # draws seconds
Scalar = str | int | float | bool  # as YAML has it
QuantityAmount = Annotated[Amount, parse_quantity]  # draws cores or bytes
