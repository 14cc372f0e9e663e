"""Arrivals and runs as Locust's ``request`` events, so that its statistics, CSV, HTML and listeners work as usual."""

import time
from typing import Any

from harness.drive.recording.ledger import Finished
from harness.model.records import Outcome, Submission


class RunFailedError(Exception):
    """A rejected or missed arrival, or a failed run, in Locust's failure statistics."""


class Statistics:
    """Fires ``SUBMIT`` for each arrival that was sent or missed, and ``RUN`` for each run that has ended.

    Times count from the due time, so Locust's figures are free of coordinated omission, too.
    """

    def __init__(self, environment: Any, name: str) -> None:
        self._fire = environment.events.request.fire
        self._name = name

    def row(self, row: Submission) -> None:
        """Fire ``SUBMIT`` for an arrival."""
        error = RunFailedError(row.error or row.outcome) if row.outcome is not Outcome.ACCEPTED else None
        latency_ms = (row.answered_at - row.due_at) / 1e6 if row.answered_at is not None else None
        self._fire_request("SUBMIT", latency_ms, error)

    def finished(self, finished: Finished) -> None:
        """Fire ``RUN`` for a run that has ended."""
        error = RunFailedError(finished.error) if finished.error is not None else None
        self._fire_request("RUN", finished.duration_s * 1e3, error)

    def _fire_request(self, kind: str, duration_ms: float | None, error: Exception | None) -> None:
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
