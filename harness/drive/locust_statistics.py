"""Rows and ends as Locust's own ``request`` events: its statistics, CSV, HTML and listeners work as users know them."""

import time
from typing import Any

from harness.drive.ledger import Finished
from harness.model.records import Outcome, Submission


class RunFailedError(Exception):
    """What Locust's failure statistics show for a run that failed."""


class Statistics:
    """Fires ``SUBMIT`` for each arrival that was sent or missed, and ``RUN`` for each run that is over.

    Times count from the due time: no coordinated omission in Locust's figures either.
    """

    def __init__(self, environment: Any, name: str) -> None:
        self._fire = environment.events.request.fire
        self._name = name

    def row(self, row: Submission) -> None:
        """An arrival's outcome is known."""
        error = RunFailedError(row.error or row.outcome) if row.outcome is not Outcome.ACCEPTED else None
        latency_ms = (row.answered_at - row.due_at) / 1e6 if row.answered_at is not None else None
        self._tell("SUBMIT", latency_ms, error)

    def finished(self, finished: Finished) -> None:
        """A run is over."""
        error = RunFailedError(finished.error) if finished.error is not None else None
        self._tell("RUN", finished.duration_s * 1e3, error)

    def _tell(self, kind: str, duration_ms: float | None, error: Exception | None) -> None:
        self._fire(
            request_type=kind,
            name=self._name,
            response_time=duration_ms,
            response_length=0,
            exception=error,
            context={},
            start_time=time.time(),
            url=None,
        )
