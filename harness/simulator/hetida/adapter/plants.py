"""Synthetic plants: whatever is asked for is there, and the same question has the same answer."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from math import pi, sin
from typing import Any

METRICS = ("temperature", "pressure", "flow")
ALERTS = "anomalies"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_S = 86_400.0
# Every so many points one lies far off: something for an anomaly detection to find.
_OUTLIER_EVERY = 500


def instant(text: str) -> datetime:
    """An ISO 8601 stamp in UTC; digits beyond microseconds are cut off, a missing zone is UTC.

    Raises:
        ValueError: it is none, or not of the years 1 to 9999.
    """
    at = datetime.fromisoformat(text.replace(" ", "+"))  # a "+" that was not quoted in the query
    try:
        return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
    except OverflowError as error:
        raise ValueError(f"{text} is out of range") from error


def stamp(at: datetime) -> str:
    """As hetida designer writes stamps: nanoseconds, Z."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%f") + "000Z"


class Plants:
    """`count` plants with a series for each of METRICS and a sink for alerts; a point every `step_s` seconds."""

    def __init__(self, count: int = 100, step_s: float = 60.0, seed: int = 0) -> None:
        self.count = count
        self.step_s = step_s
        self._seed = seed

    def series(self, name: str, begin: datetime, end: datetime) -> Iterator[tuple[str, float]]:
        """(stamp, value) from `begin` up to and including `end`, at whole multiples of the step."""
        level, phase = self._character(name)
        for index in self._steps(begin, end):
            at_s = index * self.step_s
            noise = ((index * 2_654_435_761 + self._seed) % 1000) / 1000 - 0.5
            value = level + sin(2 * pi * at_s / _DAY_S + phase) + noise / 5
            at = _EPOCH + timedelta(seconds=at_s)
            yield stamp(at), round(value + (8.0 if index % _OUTLIER_EVERY == 0 else 0.0), 4)

    def points(self, begin: datetime, end: datetime) -> int:
        """How many points a series has there."""
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
                yield self.source(f"{name}/{metric}")

    def sinks(self, plant: str | None = None) -> Iterator[dict[str, Any]]:
        """The sink of one plant, or of all."""
        for name in self._names(plant):
            yield self.sink(f"{name}/{ALERTS}")

    @staticmethod
    def source(name: str) -> dict[str, Any]:
        """One source; any name is one."""
        return _end(name)

    @staticmethod
    def sink(name: str) -> dict[str, Any]:
        """One sink; any name is one."""
        return _end(name)

    def plant(self, number: int) -> str:
        """A plant's id: ``plant-0007``."""
        return f"plant-{number + 1:04d}"

    def _names(self, plant: str | None) -> Iterator[str]:
        if plant is not None:
            yield plant
            return
        yield from map(self.plant, range(self.count))


def _end(name: str) -> dict[str, Any]:
    plant, _, metric = name.rpartition("/")
    return {
        "id": name,
        "thingNodeId": plant or name,
        "name": metric or name,
        "type": "timeseries(float)",
        "visible": True,
        "path": plant or name,
        "filters": {},  # whoever asks gives the time range of a series unasked
    }
