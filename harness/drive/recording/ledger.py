"""The ledger of a running test: every arrival once, with the state of its run."""

from array import array
from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import orjson

from harness.drive.recording.latency_histogram import LatencyHistogram
from harness.model.forgetting import Ids
from harness.model.live.state import Counts
from harness.model.phases import REMOVED, SUCCEEDED, TERMINAL_STATES
from harness.model.records import Event, Outcome, Sample, Span, Submission
from harness.store.folder import Recorder, encode
from harness.store.spools import kind_of


@dataclass(frozen=True, slots=True)
class Finished:
    """A run of this test that has ended: its duration since it was due, and the platform's error if it failed."""

    name: str
    duration_s: float
    error: str | None


class Ledger:
    """Writes each row when it is booked; only open runs stay in memory, and rows that can't be written yet.

    Attributes:
        failure: why the latest row could not be written; none if all were.
    """

    def __init__(self, recorder: Recorder, intended: int) -> None:
        self._recorder = recorder
        self.intended = intended  # grows while a closed schedule makes arrivals due
        self._outcomes: Counter[Outcome] = Counter()
        self._ends: Counter[bool] = Counter()
        # By run. Two of plain values rather than one of pairs: the garbage collector would examine a hundred thousand
        # pairs between two arrivals.
        self._open: dict[str, int] = {}  # when it was due
        self._names: dict[str, str] = {}
        self._repeated = 0  # accepted with the id of a run that was open already
        self._rejected_due: array[int] = array("q")  # when rejected arrivals were due, ascending
        self._latest_due = self._comparable_until = -1  # of booked arrivals; of those whose fate can be compared
        self.lags = LatencyHistogram()
        self._over = Ids()
        self._ended_first: dict[str, Event] = {}  # ends that the observer saw before the answer was booked
        self._held: list[tuple[type, bytes]] = []
        self._torn: set[type] = set()
        self.failure: OSError | None = None

    @property
    def counts(self) -> Counts:
        """All arrivals by state."""
        return Counts(
            self.intended,
            self._outcomes[Outcome.ACCEPTED],
            self._outcomes[Outcome.REJECTED],
            self._outcomes[Outcome.MISSED],
            self._ends[True],
            self._ends[False],
            self._repeated,
            bisect_right(self._rejected_due, self._comparable_until),
        )

    def book(self, row: Submission | Span | Event | Sample) -> Finished | None:
        """Write one record, or hold it while the folder can't be written. Returns a row's run's end if seen first.

        The end of a run is only written here; it is booked by `end` when it is read from the folder.
        """
        self._held.append((type(row), encode(row)))
        self.write_held()
        if not isinstance(row, Submission):
            return None
        return self._count(row.outcome, row.run, row.run_name, row.due_at, row.sent_at)

    def write_held(self) -> tuple[bytes, ...]:
        """Write the records that could not be written before; returns those that still can't be, see `failure`."""
        self.failure = None
        while self._held and self.failure is None:
            kind, line = self._held[0]
            try:
                # A failed write may have left half a line: a line break ends it, so that only that half is lost.
                self._recorder.append(kind, (b"\n" if kind in self._torn else b"") + line)
            except OSError as error:
                self._torn.add(kind)
                self.failure = error
            else:
                self._torn.discard(kind)
                del self._held[0]
        return tuple(line for _, line in self._held)

    def book_lines(self, lines: bytes) -> Iterator[Finished]:
        """Write records that a worker encoded; yields the ends that were seen first."""
        records = [(line, orjson.loads(line)) for line in lines.splitlines(keepends=True)]
        for kind in (Submission, Span, Event, Sample):
            of_kind = b"".join(line for line, record in records if kind_of(record) is kind)
            if of_kind:
                self._recorder.append(kind, of_kind)
        for _, row in records:
            if "outcome" not in row:
                continue
            outcome = Outcome(row["outcome"])
            if finished := self._count(outcome, row["run"], row["run_name"], row["due_at"], row["sent_at"]):
                yield finished

    def end(self, event: Event) -> Finished | None:
        """Book the end of a run, or that it was removed; none if it is no run of this test, or not known to be yet."""
        if event.kind != "Run" or event.reason not in {*TERMINAL_STATES, REMOVED}:
            return None
        if event.object not in self._open:
            if event.object not in self._over:  # else the listing shows it again, after the cluster has
                self._ended_first[event.object] = event
            return None
        self._over.add(event.object)
        name, due_at = self._names.pop(event.object), self._open.pop(event.object)
        succeeded = event.reason == SUCCEEDED
        self._ends[succeeded] += 1
        self._compare_until(due_at)
        took_s = max(0.0, (event.at - due_at) / 1e9)  # platforms round the end down to a second
        return Finished(name, took_s, None if succeeded else event.message or event.reason)

    def open(self, run: str) -> bool:
        """Whether `run` belongs to this test and has not ended."""
        return run in self._open

    def _count(self, outcome: Outcome, run: str | None, name: str, due_at: int, sent_at: int | None) -> Finished | None:
        self._outcomes[outcome] += 1
        self._latest_due = max(self._latest_due, due_at)
        if sent_at is not None:
            self.lags.add((sent_at - due_at) / 1e9)
        if outcome is Outcome.REJECTED:
            insort(self._rejected_due, due_at)
            self._compare_until(-1)
        if run is None:
            return None
        if run in self._open:
            self._repeated += 1
            return None
        self._open[run], self._names[run] = due_at, name
        early = self._ended_first.pop(run, None)
        return self.end(early) if early else None

    def _compare_until(self, due_at: int) -> None:
        """See `Counts.rejected_with_ended`: a run that was due then has ended; while none is open, all have."""
        self._comparable_until = max(self._comparable_until, due_at if self._open else self._latest_due)
