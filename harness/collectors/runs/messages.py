"""What the run poller commands: the last of several commands says what is asked for next."""

from dataclasses import dataclass

from harness.model.records import Event as EventRecord
from harness.model.records import Sample, Span


@dataclass(frozen=True, slots=True)
class Instant:
    """Now, on both clocks: `s` monotonic seconds for intervals, `at` UTC ns for records."""

    s: float
    at: int


@dataclass(frozen=True, slots=True)
class AskPage:
    """Request a page of the listing, "" for the first; answered by `RunPoller.listed` or `RunPoller.failed`."""

    token: str


@dataclass(frozen=True, slots=True)
class AskTasks:
    """Read and record the tasks of a run; expects no answer."""

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
    """Wait so long, unless stopped; answered by `RunPoller.tick` or `RunPoller.stop`."""

    seconds: float


Command = AskPage | AskTasks | Record | Note | Wait
