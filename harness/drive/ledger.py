"""The ledger of a running test: every arrival once, and what is known of its run so far."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import orjson

from harness.drive.latency_histogram import LatencyHistogram
from harness.model.phases import SUCCEEDED, TERMINAL_STATES
from harness.model.records import Event, Outcome, Sample, Span, Submission
from harness.store.folder import Recorder, encode


@dataclass(frozen=True, slots=True)
class Counts:
    """Where the arrivals are: ``intended = unsent + done + failed + in_flight + missed + rejected``."""

    intended: int
    accepted: int
    rejected: int
    missed: int
    done: int
    failed: int

    @property
    def recorded(self) -> int:
        """Arrivals whose outcome is known: sent and answered, or given up."""
        return self.accepted + self.rejected + self.missed

    @property
    def sent(self) -> int:
        """Arrivals that reached the wire."""
        return self.accepted + self.rejected

    @property
    def ended(self) -> int:
        """Arrivals of which nothing more is to be expected."""
        return self.done + self.failed + self.rejected + self.missed

    @property
    def in_flight(self) -> int:
        """Runs accepted and not over yet."""
        return self.accepted - self.done - self.failed


@dataclass(frozen=True, slots=True)
class Finished:
    """A run of this test that is over: how long after it was due, and the platform's error if it failed."""

    name: str
    duration_s: float
    error: str | None


class Ledger:
    """Writes each row as it comes and keeps only what is still open in memory."""

    def __init__(self, recorder: Recorder, intended: int) -> None:
        self._recorder = recorder
        self.intended = intended  # grows while a closed schedule makes arrivals due
        self._outcomes: Counter[Outcome] = Counter()
        self._ends: Counter[bool] = Counter()
        self._open: dict[str, tuple[str, int]] = {}  # run -> its name, when it was due
        self.lags = LatencyHistogram()
        self._ended_first: dict[str, Event] = {}  # the observer may see a run's end before its answer is booked

    @property
    def counts(self) -> Counts:
        """The present state."""
        return Counts(
            self.intended,
            self._outcomes[Outcome.ACCEPTED],
            self._outcomes[Outcome.REJECTED],
            self._outcomes[Outcome.MISSED],
            self._ends[True],
            self._ends[False],
        )

    def book(self, row: Submission | Span | Event | Sample) -> Finished | None:
        """Write one record; for a row, returns the run's end where that was seen first.

        An end that is written here is booked as any other: when it is read from the folder.
        """
        self._recorder.append(type(row), encode(row))
        if not isinstance(row, Submission):
            return None
        return self._count(row.outcome, row.run, row.run_name, row.due_at, row.sent_at)

    def book_lines(self, lines: bytes) -> Iterator[Finished]:
        """Write records that a worker encoded."""
        told = [(line, orjson.loads(line)) for line in lines.splitlines(keepends=True)]
        for kind, key in ((Submission, "outcome"), (Span, "phase"), (Event, "reason"), (Sample, "metric")):
            mine = b"".join(line for line, record in told if key in record)
            if mine:
                self._recorder.append(kind, mine)
        for _, row in told:
            if "outcome" not in row:
                continue
            outcome = Outcome(row["outcome"])
            if finished := self._count(outcome, row["run"], row["run_name"], row["due_at"], row["sent_at"]):
                yield finished

    def end(self, event: Event) -> Finished | None:
        """Book a run's end; none when it is not a run of this test, or not yet known to be."""
        if event.kind != "Run" or event.reason not in TERMINAL_STATES:
            return None
        if event.object not in self._open:
            self._ended_first[event.object] = event
            return None
        name, due_at = self._open.pop(event.object)
        succeeded = event.reason == SUCCEEDED
        self._ends[succeeded] += 1
        return Finished(name, (event.at - due_at) / 1e9, None if succeeded else event.message or event.reason)

    def open(self, run: str) -> bool:
        """Whether a run of this test is not known to be over."""
        return run in self._open

    def _count(self, outcome: Outcome, run: str | None, name: str, due_at: int, sent_at: int | None) -> Finished | None:
        self._outcomes[outcome] += 1
        if sent_at is not None:
            self.lags.add((sent_at - due_at) / 1e9)
        if run is None:
            return None
        self._open[run] = (name, due_at)
        early = self._ended_first.pop(run, None)
        return self.end(early) if early else None
