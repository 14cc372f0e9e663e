"""Instants as Kubernetes writes them, each with how fine it is."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple


class Stamp(NamedTuple):
    """An instant, UTC ns, known to `resolution_s`: what it stamps happened within so many seconds after it."""

    at: int
    resolution_s: float

    def not_before(self, other: "Stamp") -> "Stamp":
        """This instant, moved up to `other` where that is still within its resolution.

        A pod that is scheduled at 12.95 s and starts to pull at "12" pulls after 12.95 s, since "12" is all of that
        second. A stamp that contradicts `other` by more than its resolution is left as it is.
        """
        if self.at < other.at < self.at + self.resolution_s * 1e9:
            return Stamp(other.at, self.resolution_s)
        return self


def stamp(text: str | None) -> Stamp | None:
    """A `Time` (whole seconds) or `MicroTime` of the API; none when there is none.

    Raises:
        ValueError: it is neither.
    """
    if not text:
        return None
    moment = datetime.fromisoformat(text)
    at = int(moment.timestamp()) * 10**9 + moment.microsecond * 1000
    return Stamp(at, 1e-6 if "." in text else 1.0)


def finer(one: Stamp | None, other: Stamp | None) -> Stamp | None:
    """The finer one of two stamps of the same thing; the earlier one when they are equally fine."""
    if one is None or other is None:
        return one or other
    return min(one, other, key=lambda each: (each.resolution_s, each.at))


def event_stamps(event: Mapping[str, Any]) -> tuple[Stamp, Stamp]:
    """When an event happened first and last.

    Old recorders (kubelet, autoscaler) write `firstTimestamp` and `lastTimestamp` in whole seconds, new ones (the
    scheduler) `eventTime` in microseconds and, when it happened again, a `series`.
    """
    created = stamp(event["metadata"].get("creationTimestamp")) or Stamp(0, 1.0)
    first = stamp(event.get("eventTime")) or stamp(event.get("firstTimestamp")) or created
    again = stamp((event.get("series") or {}).get("lastObservedTime"))
    last = again or (first if event.get("eventTime") else stamp(event.get("lastTimestamp"))) or first
    return first, last


def event_count(event: Mapping[str, Any]) -> int:
    """How often it has happened."""
    return int((event.get("series") or {}).get("count") or event.get("count") or 1)
