"""Progress of the load, from its ledger."""

from collections.abc import Iterable

from harness.collectors.runs.poll_hint import Load
from harness.model import Plan, Submission

_CLOSED = "concurrency"  # the schedule of the closed model
_ALL_ARRIVED = frozenset({"draining", "cleaning up", "reporting", "over"})  # stages of the load


def is_closed(plan: Plan) -> bool:
    """Whether each arrival waits for the end of an earlier run."""
    return plan.schedule.get("name") == _CLOSED


class Arrivals:
    """The arrivals so far.

    Attributes:
        sent: how many were sent.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._booked = self._refused = 0
        self._stage = ""
        self.sent = 0

    def add(self, submissions: Iterable[Submission], stage: str) -> list[str]:
        """Take in new rows of the ledger and the load's present stage; returns the runs of the accepted ones."""
        self._stage, accepted = stage, []
        for submission in submissions:
            self._booked += 1
            self.sent += submission.sent_at is not None
            self._refused += submission.status is not None and not submission.run
            if submission.run:
                accepted.append(submission.run)
        return accepted

    @property
    def possible_runs(self) -> int:
        """Upper bound on runs started: a submission without a response may have started one."""
        return self.sent - self._refused

    @property
    def load(self) -> Load:
        """Who waits for the ends of runs at present."""
        if is_closed(self._plan):
            return Load.CLOSED
        if not self._plan.intended:
            return Load.EXTERNAL
        # The ledger lacks the arrivals of a lost worker; the load's stage says that no more will come.
        if self._booked >= self._plan.intended or self._stage in _ALL_ARRIVED:
            return Load.ARRIVED
        return Load.ARRIVING
