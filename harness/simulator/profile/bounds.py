"""Bounds of a profile's settings, given beside their types: ``Annotated[float, SHARE]``."""

from dataclasses import dataclass
from math import inf


@dataclass(frozen=True, slots=True)
class Range:
    """A range of numbers; `open` excludes the least itself."""

    least: float
    most: float = inf
    open: bool = False

    def __contains__(self, value: float) -> bool:
        return value <= self.most and (value > self.least if self.open else value >= self.least)

    def __str__(self) -> str:
        if self.most < inf:
            return f"a number from {self.least:g} to {self.most:g}"
        return f"a number above {self.least:g}" if self.open else f"{self.least:g} or more"


@dataclass(frozen=True, slots=True)
class OneOf:
    """A choice of texts."""

    values: tuple[str, ...]

    def __contains__(self, value: object) -> bool:
        return value in self.values

    def __str__(self) -> str:
        return f"one of: {', '.join(self.values)}"


ABOVE_0 = Range(0, open=True)
FROM_1 = Range(1)
SHARE = Range(0, 1)
