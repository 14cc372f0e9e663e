"""The state of a running load test: what its progress line, web tab, metrics and ``live.json`` show."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from enum import StrEnum
from typing import Any


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
        eta_s: estimated seconds until the last run ends.
    """

    stage: str = ""
    load: str = ""
    counts: Counts | None = None
    awaited: int = 0
    lag_s: float | None = None
    lag_p99_s: float | None = None
    runs_per_min: float | None = None
    eta_s: float | None = None

    def to_mapping(self) -> dict[str, object]:
        """The JSON object of ``live.json``; only what is known."""
        if self.counts is None:
            return {"stage": self.stage} if self.stage else {}
        sent = self.counts.sent + self.awaited
        known: dict[str, object] = {"stage": str(self.stage), **asdict(self.counts)}
        known |= {"sent": sent, "awaited": self.awaited, "in_flight": self.counts.in_flight}
        known |= {"lag_s": self.lag_s, "lag_p99_s": self.lag_p99_s, "load": self.load}
        if self.runs_per_min is not None:
            known |= {"runs_per_min": self.runs_per_min, "eta_s": self.eta_s}
        return known

    @classmethod
    def from_mapping(cls, raw: Mapping[str, Any]) -> "LiveLoad":
        """The inverse of `to_mapping`; ignores keys it does not know."""
        counts = {each.name: int(raw[each.name]) for each in fields(Counts) if each.name in raw}
        own = {each.name: raw[each.name] for each in fields(cls) if each.name in raw}
        return cls(**{**own, "counts": Counts(**counts) if counts else None})
