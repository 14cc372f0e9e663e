"""Synthetic plants: every series exists, and the same request gives the same data."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from math import pi, sin
from typing import Any

METRICS = ("temperature", "pressure", "flow")
ALERTS = "anomalies"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_S = 86_400.0
# One point in this many is an outlier, for an anomaly detection to find.
_OUTLIER_EVERY = 500


def instant(text: str) -> datetime:
    """Parse an ISO 8601 timestamp; digits beyond microseconds are dropped, the default zone is UTC.

    Raises:
        ValueError: not a timestamp, or outside the years 1 to 9999.
    """
    at = datetime.fromisoformat(text.replace(" ", "+"))  # an unquoted "+" in the query
    try:
        return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except OverflowError as error:
        raise ValueError(f"{text} is out of range") from error


def stamp(at: datetime) -> str:
    """A timestamp as hetida designer writes it: nanoseconds and Z."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f") + "000Z"


class Plants:
    """`count` plants with a series for each of METRICS and a sink for alerts; a point every `step_s` seconds."""

    def __init__(self, count: int = 100, step_s: float = 60.0, seed: int = 0) -> None:
        self.count = count
        self.step_s = step_s
        self._seed = seed

    def series(self, name: str, begin: datetime, end: datetime) -> Iterator[tuple[str, float]]:
        """(timestamp, value) from `begin` to `end` inclusive, at whole multiples of the step."""
        level, phase = self._character(name)
        for index in self._steps(begin, end):
            at_s = index * self.step_s
            noise = ((index * 2_654_435_761 + self._seed) % 1000) / 1000 - 0.5
            value = level + sin(2 * pi * at_s / _DAY_S + phase) + noise / 5
            at = _EPOCH + timedelta(seconds=at_s)
            yield stamp(at), round(value + (8.0 if index % _OUTLIER_EVERY == 0 else 0.0), 4)

    def points(self, begin: datetime, end: datetime) -> int:
        """The number of points of a series in that range."""
        return len(self._steps(begin, end))

    def _steps(self, begin: datetime, end: datetime) -> range:
        first, last = -(-begin.timestamp() // self.step_s), end.timestamp() // self.step_s
        return range(int(first), int(last) + 1)

    def _character(self, name: str) -> tuple[float, float]:
        digest = blake2b(f"{self._seed}/{name}".encode(), digest_size=4).digest()
        return 20.0 + digest[0] % 60, 2 * pi * digest[1] / 256

    # --- what the user interface browses ------------------------------------------------------------------------

    def nodes(self) -> Iterator[dict[str, Any]]:
        """The plants as thing nodes."""
        for number in range(self.count):
            name = self.plant(number)
            yield {"id": name, "parentId": None, "name": name, "description": "a simulated plant"}

    def sources(self, plant: str | None = None) -> Iterator[dict[str, Any]]:
        """The series of one plant, or of all."""
        for name in self._names(plant):
            for metric in METRICS:
                yield endpoint(f"{name}/{metric}")

    def sinks(self, plant: str | None = None) -> Iterator[dict[str, Any]]:
        """The sink of one plant, or of all."""
        for name in self._names(plant):
            yield endpoint(f"{name}/{ALERTS}")

    def plant(self, number: int) -> str:
        """The id of a plant by its number, from 0: 6 is ``plant-0007``."""
        return f"plant-{number + 1:04d}"

    def _names(self, plant: str | None) -> Iterator[str]:
        if plant is not None:
            yield plant
            return
        yield from map(self.plant, range(self.count))


def endpoint(name: str) -> dict[str, Any]:
    """A source or sink; any name is one."""
    plant, _, metric = name.rpartition("/")
    return {
        "id": name,
        "thingNodeId": plant or name,
        "name": metric or name,
        "type": "timeseries(float)",
        "visible": True,
        "path": plant or name,
        "filters": {},  # the time range of a series is always part of the request
    }
