"""Whether a source can be reached, and the loop that asks one without a watch.

Transitions are recorded, and so are the gaps in what was observed of it.
"""

import threading
from collections.abc import Callable

from harness.collectors.journal import Journal
from harness.model.phases import GAP, NOT_REACHABLE, RESUMED
from harness.model.units import format_duration

RETRY = "Retry"
_FIRST_WAIT_S, _LONGEST_WAIT_S = 1.0, 30.0
_SILENT_S = 10.0  # a source that takes longer to respond was not observed meanwhile


class UnreachableError(Exception):
    """A source refused, timed out, or responded unexpectedly. `status` is the HTTP status, 0 without a response."""

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class SourceHealth:
    """The reachability of one source, called `name` in records. Used by one thread.

    An outage of at most `brief_s` seconds is recorded, but is no gap.
    """

    def __init__(self, name: str, journal: Journal, *, brief_s: float = 0.0) -> None:
        self.name = name
        self._journal = journal
        self._brief_s = brief_s
        self._ever_answered = False
        self._lost_at: int | None = None
        self._why = ""
        self._failures = 0

    @property
    def lost(self) -> bool:
        """It is unreachable at present."""
        return self._lost_at is not None

    def now(self) -> int:
        """The current time in UTC nanoseconds, to record when the source was asked."""
        return self._journal.now()

    def answered(self, *, missed: bool = True, asked_at: int | None = None) -> None:
        """The source responded. If it was unreachable before, or silent since `asked_at`, that time is recorded.

        As a gap, unless nothing was `missed` because the source reports afterwards what had happened.
        """
        if asked_at is not None and self._lost_at is None and self._seconds_since(asked_at) > _SILENT_S:
            self._lost_at, self._why = asked_at, "no response"
        self._ever_answered = True
        self._failures = 0
        if self._lost_at is not None:
            brief = self._seconds_since(self._lost_at) < self._brief_s
            self._note_gap(GAP if missed and not brief else RESUMED)
            self._lost_at = None

    def failed(self, error: Exception, asked_at: int | None = None) -> float:
        """The source did not respond; returns the seconds to wait before the next attempt: 1, 2, 4 … 30."""
        why = str(error) or type(error).__name__
        if self._lost_at is None:
            self._lost_at, self._why = asked_at or self._journal.now(), why
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
        text = f"unreachable for {format_duration(self._seconds_since(self._lost_at))}{until}: {self._why}"
        self._journal.note(reason, self.name, text, at=self._lost_at)

    def _seconds_since(self, at: int) -> float:
        return (self._journal.now() - at) / 1e9


class Polling:
    """Calls `ask`, which records what the source shows now, every `every_s` seconds.

    Args:
        health: of the source.
        ask: raises `UnreachableError` when the source can't be asked.
        every_s: between two calls; longer after failures.
        remembers: the source reports later what happened while it was unreachable, so that nothing is missed.

    Attributes:
        looked: the source was asked at least once, successfully or not.
    """

    def __init__(
        self, health: SourceHealth, ask: Callable[[], None], every_s: float, *, remembers: bool = False
    ) -> None:
        self._health = health
        self._ask = ask
        self._every_s = every_s
        self._remembers = remembers
        self.looked = False

    @property
    def lost(self) -> bool:
        """The source is unreachable at present."""
        return self._health.lost

    def follow(self, stop: threading.Event) -> None:
        """Ask until `stop` is set, and then once more."""
        while not stop.is_set():
            stop.wait(self.attempt())
        self.attempt()
        self._health.end()

    def attempt(self) -> float:
        """Ask once; returns the seconds to wait before the next attempt."""
        asked_at = self._health.now()
        try:
            self._ask()
        except UnreachableError as error:
            return max(self._health.failed(error, asked_at), self._every_s)
        else:
            self._health.answered(missed=not self._remembers, asked_at=asked_at)
        finally:
            self.looked = True
        return self._every_s
