"""The types of a profile's settings: numbers with a unit, with bounds, or both."""

from collections.abc import Callable
from typing import Annotated

from harness.model.errors import ConfigError
from harness.model.text.typed import OneOf, Range
from harness.model.units import parse_duration, parse_quantity
from harness.simulator.engine.distributions import FORMS, Amount, Number, parse_amount

__all__ = ["OneOf", "Range"]


def _amount(number: Number) -> Callable[[object], Amount]:
    def parse(given: object) -> Amount:
        try:
            return parse_amount(given, number)
        except ValueError as error:
            raise ConfigError(str(error), FORMS) from error

    return parse


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
DurationAmount = Annotated[Amount, _amount(parse_duration)]  # draws seconds
Scalar = str | int | float | bool  # as YAML has it
QuantityAmount = Annotated[Amount, _amount(parse_quantity)]  # draws cores or bytes
