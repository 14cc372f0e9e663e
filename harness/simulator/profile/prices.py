"""The price of a spot machine over time, from a CSV file with the columns ``at`` and ``price``."""

import csv
from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from datetime import UTC, datetime
from io import StringIO
from itertools import pairwise
from math import isfinite

from harness.model.errors import ConfigError
from harness.model.units import parse_duration

_MOST_CELL = 64  # characters: no number or date is longer
_HINT = "write the columns at,price: at is a time from the start (90m) or a date (2026-01-31T12:00:00Z), price per hour"


@dataclass(frozen=True, slots=True)
class PriceSeries:
    """A price per hour that holds from each instant to the next; the first also holds before.

    Attributes:
        starts_s: ascending, seconds after the start.
        prices: of the same length.
    """

    starts_s: tuple[float, ...] = ()
    prices: tuple[float, ...] = ()

    def at(self, second: float) -> float:
        """The price at an instant. The series must not be empty."""
        return self.prices[max(0, bisect_right(self.starts_s, second) - 1)]

    def mean(self, start_s: float, end_s: float) -> float:
        """The mean price over an interval; the price at its start if it has no length."""
        if end_s <= start_s:
            return self.at(start_s)
        inner = slice(bisect_right(self.starts_s, start_s), bisect_left(self.starts_s, end_s))
        bounds = [start_s, *self.starts_s[inner], end_s]
        paid = sum(self.at(begun) * (over - begun) for begun, over in pairwise(bounds))
        return paid / (end_s - start_s)


def parse_prices(text: str, where: str) -> PriceSeries:
    """Read a CSV document. Dates count from the first one.

    Raises:
        ConfigError: a column is missing, or a line has no instant or price; the message names the line.
    """
    rows = csv.DictReader(StringIO(text), skipinitialspace=True)
    try:
        return _series(rows, where)
    except csv.Error as error:
        raise ConfigError(f"{where}: {error}", _HINT) from error


def _series(rows: "csv.DictReader[str]", where: str) -> PriceSeries:
    if not {"at", "price"} <= set(rows.fieldnames or ()):
        raise ConfigError(f"{where}: there are no columns 'at' and 'price'", _HINT)
    starts: list[float] = []
    prices: list[float] = []
    origin: float | None = None
    for row in rows:
        if any(len(str(row[name])) > _MOST_CELL for name in ("at", "price")):
            raise ConfigError(f"{where}:{rows.line_num}: a cell has more than {_MOST_CELL} characters", _HINT)
        try:
            instant, is_date = _instant(str(row["at"]))
            price = float(row["price"] or "")
        except (ConfigError, ValueError) as error:
            raise ConfigError(f"{where}:{rows.line_num}: {_said(error)}", _HINT) from error
        if is_date:
            origin = instant if origin is None else origin
            instant -= origin
        if not isfinite(price) or price < 0 or (starts and instant <= starts[-1]):
            raise ConfigError(f"{where}:{rows.line_num}: instants must ascend, and prices be 0 or more", _HINT)
        starts.append(instant)
        prices.append(price)
    if not starts:
        raise ConfigError(f"{where}: there are no prices", _HINT)
    return PriceSeries(tuple(starts), tuple(prices))


def _instant(text: str) -> tuple[float, bool]:
    """Seconds, and whether they are those of a date."""
    try:
        date = datetime.fromisoformat(text)
    except ValueError:
        return parse_duration(text), False
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp(), True


def _said(error: Exception) -> str:
    return error.message if isinstance(error, ConfigError) else str(error)
