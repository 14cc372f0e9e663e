"""What goes into the run poller and what comes out: events and commands."""

from collections.abc import Iterable
from dataclasses import dataclass

from harness.collectors.collector import Activity
from harness.model.records import Event as EventRecord
from harness.model.records import Sample, Span, Submission
from harness.targets.target import RunPage


@dataclass(frozen=True, slots=True)
class Instant:
    """Now, on both clocks: `s` monotonic seconds for intervals, `at` UTC ns for records."""

    s: float
    at: int


# --- events ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Started:
    """The observation begins, or begins again after an internal error."""

    now: Instant


@dataclass(frozen=True, slots=True)
class LedgerGrew:
    """New rows of the load's ledger, and the load's present stage."""

    submissions: Iterable[Submission]
    stage: str


@dataclass(frozen=True, slots=True)
class ClusterHint:
    """What the cluster shows now."""

    activity: Activity


@dataclass(frozen=True, slots=True)
class Tick:
    """A wait is over."""

    now: Instant


@dataclass(frozen=True, slots=True)
class PageListed:
    """The platform has answered, after `took_s`."""

    now: Instant
    page: RunPage
    took_s: float


@dataclass(frozen=True, slots=True)
class PollFailed:
    """The platform has not answered, and is to be left alone for `backoff_s`."""

    now: Instant
    backoff_s: float


@dataclass(frozen=True, slots=True)
class Stopping:
    """The observation ends: one last sweep."""


Event = Started | LedgerGrew | ClusterHint | Tick | PageListed | PollFailed | Stopping


# --- commands -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AskPage:
    """Request a page of the listing, "" for the first; answered by `PageListed` or `PollFailed`."""

    token: str


@dataclass(frozen=True, slots=True)
class AskTasks:
    """Read and record the tasks of a run; expects no event."""

    run: str


@dataclass(frozen=True, slots=True)
class Record:
    """Write a record to the journal."""

    record: Span | Sample | EventRecord


@dataclass(frozen=True, slots=True)
class Note:
    """Record something about the observation itself."""

    reason: str
    source: str
    message: str


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait so long, unless stopped; answered by `Tick` or `Stopping`."""

    seconds: float


Command = AskPage | AskTasks | Record | Note | Wait
