"""The state of a running load test: what its progress line, web tab, metrics and ``live.json`` show."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any

_FRESH_S = 10.0


class Stage(StrEnum):
    """The stages of a test, in order; the values are shown to people and written to ``live.json``."""

    PREPARING = "preparing"
    DISPATCHING = "dispatching"
    DRAINING = "draining"
    CLEANING = "cleaning up"
    REPORTING = "reporting"
    OVER = "over"


@dataclass(frozen=True, slots=True)
class Counts:
    """Arrivals by state: ``intended = unsent + done + failed + in_flight + repeated + missed + rejected``.

    Attributes:
        repeated: accepted with the id of another run that has not ended: what becomes of them can't be known.
        rejected_with_ended: of the rejected ones, those due no later than a run that has ended; all while no run is in
            flight.
    """

    intended: int = 0
    accepted: int = 0
    rejected: int = 0
    missed: int = 0
    done: int = 0
    failed: int = 0
    repeated: int = 0
    rejected_with_ended: int = 0

    @property
    def recorded(self) -> int:
        """Arrivals with a known outcome: answered or missed."""
        return self.accepted + self.rejected + self.missed

    @property
    def sent(self) -> int:
        """Arrivals that were sent and answered."""
        return self.accepted + self.rejected

    @property
    def ended(self) -> int:
        """Arrivals that will not change any more."""
        return self.done + self.failed + self.repeated + self.rejected + self.missed

    @property
    def in_flight(self) -> int:
        """Accepted runs that have not ended."""
        return self.accepted - self.done - self.failed - self.repeated


@dataclass(frozen=True, slots=True)
class LiveLoad:
    """The state of the load at one moment. Without `counts` the test has no ledger yet.

    Attributes:
        stage: a `Stage`, or "not started" for a test that was refused; "" before the first test.
        load: the schedule and its model, open or closed.
        awaited: requests that were sent and not yet answered.
        lag_s: the longest lag since the last look; `lag_p99_s` covers the whole test.
        succeeded_per_hour: since the start of the dispatch.
        eta_s: estimated seconds until the last run ends.
        ends_age_s: how old `done` and `failed` are; None where ends are known at once.
    """

    stage: str = ""
    load: str = ""
    counts: Counts | None = None
    awaited: int = 0
    lag_s: float | None = None
    lag_p99_s: float | None = None
    succeeded_per_hour: float | None = None
    eta_s: float | None = None
    ends_age_s: float | None = None

    @property
    def stale_s(self) -> float | None:
        """How old the counts of ended runs are, if that is worth saying: runs are in flight, and may have ended."""
        fresh = self.ends_age_s is None or self.ends_age_s < _FRESH_S
        return None if fresh or self.counts is None or not self.counts.in_flight else self.ends_age_s

    def to_mapping(self) -> dict[str, object]:
        """The JSON object of ``live.json``; only what is known."""
        if self.counts is None:
            return {"stage": self.stage} if self.stage else {}
        sent = self.counts.sent + self.awaited
        known: dict[str, object] = {"stage": str(self.stage), **asdict(self.counts)}
        known |= {"sent": sent, "awaited": self.awaited, "in_flight": self.counts.in_flight}
        known |= {"lag_s": self.lag_s, "lag_p99_s": self.lag_p99_s, "load": self.load}
        if self.succeeded_per_hour is not None:
            known |= {"succeeded_per_hour": self.succeeded_per_hour, "eta_s": self.eta_s}
        if self.ends_age_s is not None:
            known["ends_age_s"] = self.ends_age_s
        return known

    @classmethod
    def from_mapping(cls, raw: Mapping[str, Any]) -> "LiveLoad":
        """The inverse of `to_mapping`; ignores keys it does not know."""
        counts = {field.name: int(raw[field.name]) for field in fields(Counts) if field.name in raw}
        own = {field.name: raw[field.name] for field in fields(cls) if field.name in raw}
        return cls(**{**own, "counts": Counts(**counts) if counts else None})
