"""Whether a source can be reached: the transitions are recorded, and so the gaps in what was seen of it."""

from harness.collectors.journal import Journal
from harness.model.phases import GAP
from harness.model.units import format_duration

NOT_REACHABLE = "NotReachable"
RETRY = "Retry"
RESUMED = "Resumed"
_FIRST_WAIT_S, _LONGEST_WAIT_S = 1.0, 30.0


class UnreachableError(Exception):
    """A source refused, timed out, or answered something else. `status` is the HTTP status, 0 without an answer."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class SourceHealth:
    """The contact with one source, called `name` in records. Used by one thread."""

    def __init__(self, name: str, journal: Journal) -> None:
        self.name = name
        self._journal = journal
        self._ever = False
        self._lost_at: int | None = None
        self._why = ""
        self._failures = 0

    @property
    def lost(self) -> bool:
        """It can't be reached at present."""
        return self._lost_at is not None

    def made(self, *, missed: bool = True) -> None:
        """The source answered. If it had not, the time without it is recorded.

        It is a gap unless nothing was `missed`, because the source told afterwards what had happened.
        """
        self._ever = True
        self._failures = 0
        if self._lost_at is not None:
            self._tell(GAP if missed else RESUMED, "")
            self._lost_at = None

    def failed(self, error: Exception) -> float:
        """The source did not answer; the seconds to wait before it is asked again: 1, 2, 4 … 30."""
        why = str(error) or type(error).__name__
        if self._lost_at is None:
            self._lost_at, self._why = self._journal.now(), why
        if self._ever:
            self._journal.note(RETRY, self.name, why)
        elif not self._failures or why != self._why:
            # Not to have access is normal, and said once.
            self._journal.note(NOT_REACHABLE, self.name, why)
            self._why = why
        self._failures += 1
        return min(_FIRST_WAIT_S * 2.0 ** (self._failures - 1), _LONGEST_WAIT_S)

    def end(self) -> None:
        """The observation ends: a source that was there and is away is a gap until now."""
        if self._ever and self._lost_at is not None:
            self._tell(GAP, ", until the end of the observation")

    def _tell(self, reason: str, until: str) -> None:
        assert self._lost_at is not None
        length_s = (self._journal.now() - self._lost_at) / 1e9
        text = f"not seen for {format_duration(length_s)}{until}: {self._why}"
        self._journal.note(reason, self.name, text, at=self._lost_at)
