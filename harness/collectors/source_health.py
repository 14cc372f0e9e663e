"""Whether a source can be reached. Transitions are recorded, and so are the gaps in what was observed of it."""

from harness.collectors.journal import Journal
from harness.model.phases import GAP
from harness.model.units import format_duration

NOT_REACHABLE = "NotReachable"
RETRY = "Retry"
RESUMED = "Resumed"
_FIRST_WAIT_S, _LONGEST_WAIT_S = 1.0, 30.0


class UnreachableError(Exception):
    """A source refused, timed out, or responded unexpectedly. `status` is the HTTP status, 0 without a response."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class SourceHealth:
    """The reachability of one source, called `name` in records. Used by one thread."""

    def __init__(self, name: str, journal: Journal) -> None:
        self.name = name
        self._journal = journal
        self._ever_answered = False
        self._lost_at: int | None = None
        self._why = ""
        self._failures = 0

    @property
    def lost(self) -> bool:
        """It is unreachable at present."""
        return self._lost_at is not None

    def answered(self, *, missed: bool = True) -> None:
        """The source responded. If it was unreachable before, that time is recorded.

        As a gap, unless nothing was `missed` because the source reports afterwards what had happened.
        """
        self._ever_answered = True
        self._failures = 0
        if self._lost_at is not None:
            self._note_gap(GAP if missed else RESUMED)
            self._lost_at = None

    def failed(self, error: Exception) -> float:
        """The source did not respond; returns the seconds to wait before the next attempt: 1, 2, 4 … 30."""
        why = str(error) or type(error).__name__
        if self._lost_at is None:
            self._lost_at, self._why = self._journal.now(), why
        if self._ever_answered:
            self._journal.note(RETRY, self.name, why)
        elif not self._failures or why != self._why:
            # Having no access is normal: it is recorded once.
            self._journal.note(NOT_REACHABLE, self.name, why)
            self._why = why
        self._failures += 1
        return min(_FIRST_WAIT_S * 2.0 ** (self._failures - 1), _LONGEST_WAIT_S)

    def end(self) -> None:
        """The observation ends: a source that responded before and is unreachable now leaves a gap."""
        if self._ever_answered and self._lost_at is not None:
            self._note_gap(GAP, ", until the end of the observation")

    def _note_gap(self, reason: str, until: str = "") -> None:
        assert self._lost_at is not None
        length_s = (self._journal.now() - self._lost_at) / 1e9
        text = f"unreachable for {format_duration(length_s)}{until}: {self._why}"
        self._journal.note(reason, self.name, text, at=self._lost_at)
