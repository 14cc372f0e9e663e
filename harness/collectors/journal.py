"""Where all collectors write: the run folder, shared by threads, free of secrets, buffered while the disk is full."""

import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import replace

from harness.model.phases import GAP, OBSERVER_REQUESTS
from harness.model.records import Event, Sample
from harness.model.text.redaction import Redaction
from harness.store.folder import Recorder, encode

_MAX_HELD = 200_000  # records kept in memory while the folder can't be written: about 100 MB


class Journal:
    """Appends records, counts the observer's own requests, and remembers the last error.

    Args:
        recorder: of the run folder.
        redaction: removes secrets from messages.
        now: UTC ns.
        clip: what to record of a record; None is nothing.

    Attributes:
        clean: removes secrets from a text.
        last_error: for the live view; "" for none.
    """

    def __init__(
        self,
        recorder: Recorder,
        redaction: Redaction | None = None,
        now: Callable[[], int] = time.time_ns,
        clip: Callable[[object], object | None] = lambda record: record,
    ) -> None:
        self._recorder = recorder
        self._clip = clip
        self.clean = (redaction or Redaction()).clean
        self._lock = threading.Lock()
        self._held: deque[object] = deque()
        self._torn: set[type] = set()
        self._waiting = False
        self._lost = 0
        self._requests: Counter[str] = Counter()
        self.now = now
        self.last_error = ""

    def write(self, record: object) -> None:
        """Append one record. While the folder can't be written, records are held and written later."""
        kept = self._clip(record)
        if kept is None:
            return
        if isinstance(kept, Event):
            kept = replace(kept, message=self.clean(kept.message))
        with self._lock:
            self._held.append(kept)
            self._flush()

    def note(self, reason: str, source: str, message: str = "", *, at: int | None = None) -> None:
        """Record something about the observation itself: a gap, a retry, an unreachable source."""
        self.last_error = f"{source}: {self.clean(message)}"
        self.write(Event(at or self.now(), "Observer", source, reason, message, type="Warning"))

    def count(self, endpoint: str) -> None:
        """Count one request of the observer to `endpoint` (source, method and path without query)."""
        with self._lock:
            self._requests[endpoint] += 1

    @property
    def requests(self) -> Mapping[str, int]:
        """The observer's requests so far, by endpoint."""
        with self._lock:
            return dict(self._requests)

    def retry(self) -> None:
        """Try to write the records that are held."""
        with self._lock:
            self._flush()

    def write_requests(self) -> None:
        """Record the counts of requests so far, as samples."""
        at = self.now()
        for endpoint, count in sorted(self.requests.items()):
            self.write(Sample(OBSERVER_REQUESTS, at, float(count), {"endpoint": endpoint}))

    @property
    def held(self) -> int:
        """How many records wait because the folder can't be written."""
        with self._lock:
            return len(self._held)

    def _flush(self) -> None:
        while self._held:
            record = self._held[0]
            kind = type(record)
            # A failed write may have left half a line: a line break ends it, so that only that half is lost.
            line = (b"\n" if kind in self._torn else b"") + encode(record)
            try:
                self._recorder.append(kind, line)
            except OSError as error:
                self._torn.add(kind)
                self._waiting = True
                self.last_error = f"run folder: {error.strerror}"
                if len(self._held) > _MAX_HELD:
                    self._held.popleft()
                    self._lost += 1
                return
            self._torn.discard(kind)
            self._held.popleft()
            if self._waiting and not self._held:
                self._held.append(self._resumed())

    def _resumed(self) -> Event:
        kept = (
            f"{self._lost:,} records were lost" if self._lost else "every record was kept in memory and written later"
        )
        self._waiting, self._lost = False, 0
        text = f"the run folder could not be written for a while; {kept}"
        return Event(self.now(), "Observer", "run folder", GAP, text, type="Warning")
