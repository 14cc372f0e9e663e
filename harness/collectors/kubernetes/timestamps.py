"""Instants as Kubernetes writes them, each with its resolution."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple


class Stamp(NamedTuple):
    """An instant that lies between `at`, UTC ns, and `resolution_s` later."""

    at: int
    resolution_s: float

    @property
    def latest(self) -> int:
        """The last instant it can be, UTC ns."""
        return self.at + round(self.resolution_s * 1e9)


def settled(stamps: Sequence[Stamp]) -> list[int]:
    """The most likely instants, UTC ns, of events that happened in this order.

    A pod created at "12" and scheduled at 12.2 s was created between 12 s and 12.2 s. Each stamp is narrowed by its
    neighbours, and the middle of its interval is taken: stamps in whole seconds are truncated, so that taking them at
    face value would prolong every interval from one to a fine stamp by half a second on average. Stamps that contradict
    each other by more than their resolution stay as they are, and the interval between them is negative.
    """
    earliest, latest = [each.at for each in stamps], [each.latest for each in stamps]
    for k in range(1, len(stamps)):
        if earliest[k] < earliest[k - 1] <= latest[k]:
            earliest[k] = earliest[k - 1]
    for k in reversed(range(len(stamps) - 1)):
        if earliest[k] <= latest[k + 1] < latest[k]:
            latest[k] = latest[k + 1]
    return [(low + high) // 2 for low, high in zip(earliest, latest, strict=True)]


def stamp(text: str | None) -> Stamp | None:
    """A `Time` (whole seconds) or `MicroTime` of the API; none without one.

    Raises:
        ValueError: the text is neither.
    """
    if not text:
        return None
    moment = datetime.fromisoformat(text)
    at = int(moment.timestamp()) * 10**9 + moment.microsecond * 1000
    return Stamp(at, 1e-6 if "." in text else 1.0)


def finer(one: Stamp | None, other: Stamp | None) -> Stamp | None:
    """The finer one of two stamps of the same instant; the earlier one when they are equally fine."""
    if one is None or other is None:
        return one or other
    return min(one, other, key=lambda each: (each.resolution_s, each.at))


def event_stamps(event: Mapping[str, Any]) -> tuple[Stamp, Stamp]:
    """When an event happened first and last.

    Old recorders (kubelet, autoscaler) write `firstTimestamp` and `lastTimestamp` in whole seconds; new ones (the
    scheduler) write `eventTime` in microseconds and, when the event repeats, a `series`.
    """
    created = stamp(event["metadata"].get("creationTimestamp")) or Stamp(0, 1.0)
    first = stamp(event.get("eventTime")) or stamp(event.get("firstTimestamp")) or created
    again = stamp((event.get("series") or {}).get("lastObservedTime"))
    last = again or (first if event.get("eventTime") else stamp(event.get("lastTimestamp"))) or first
    return first, last


def event_count(event: Mapping[str, Any]) -> int:
    """How often an event has happened; a series is at least two, though old recorders start its count at one."""
    series = event.get("series")
    return max(int(series.get("count") or 0), 2) if series else int(event.get("count") or 1)
