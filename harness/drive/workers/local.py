"""The load generator of a single Locust process."""

from collections.abc import Callable, Sequence

import gevent

from harness.drive.dispatch.loop import Record
from harness.drive.session_messages import Due
from harness.drive.workers.load_generator import Worker
from harness.plan.assignment import Assignment
from harness.targets.credentials import Credentials


class LocalGenerator:
    """Sends all arrivals from a greenlet of this process."""

    def __init__(self, credentials: Credentials, record: Callable[[Record], None]) -> None:
        self._credentials = credentials
        self._record = record
        self._worker: Worker | None = None
        self._greenlet: gevent.Greenlet | None = None

    def start(self, assignment: Assignment) -> None:
        """See `LoadGenerator.start`."""
        self._worker = Worker(assignment, self._credentials, self._record)
        self._greenlet = gevent.spawn(self._worker.run)

    def send(self, dues: Sequence[Due], *, last: bool = False) -> None:
        """See `LoadGenerator.send`."""
        if self._worker is not None:
            self._worker.send(dues, last=last)

    def stop(self, why: str, *, at_once: bool = False) -> None:
        """See `LoadGenerator.stop`."""
        if self._worker is not None:
            self._worker.stop(why, at_once=at_once)

    def finished(self) -> bool:
        """See `LoadGenerator.finished`.

        Raises:
            Exception: an internal error ended the dispatch; a platform's response never does.
        """
        if self._greenlet is None or not self._greenlet.ready():
            return False
        self._greenlet.get()
        return True
