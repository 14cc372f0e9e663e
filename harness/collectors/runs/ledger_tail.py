"""What the load has done so far, read from the ledger that it writes."""

from harness.collectors.collector import Observation
from harness.collectors.runs.poll_hint import Load
from harness.model.records import Submission

_CLOSED = "concurrency"  # the schedule of the closed model
_ALL_ARRIVED = frozenset({"draining", "cleaning up", "reporting", "over"})  # stages of the load


class Submitted:
    """The arrivals so far; `read` takes in what is new.

    Attributes:
        runs: the platform's ids of those that it accepted.
        sent: how many it was sent.
    """

    def __init__(self, observation: Observation) -> None:
        self._plan = observation.plan
        self._folder = observation.folder
        self._submissions = observation.folder.tail(Submission)
        self._booked = self._refused = 0
        self.runs: set[str] = set()
        self.sent = 0

    def read(self) -> None:
        """Take in what was booked since."""
        for each in self._submissions.read():
            self._booked += 1
            self.sent += each.sent_at is not None
            self._refused += each.status is not None and not each.run
            if each.run:
                self.runs.add(each.run)

    @property
    def may_run(self) -> int:
        """How many runs there may be: nobody knows of those whose answer was lost."""
        return self.sent - self._refused

    @property
    def closed(self) -> bool:
        """An arrival waits for the end of a run before."""
        return self._plan.schedule.get("name") == _CLOSED

    @property
    def load(self) -> Load:
        """Where the load is."""
        if self.closed:
            return Load.CLOSED
        if not self._plan.intended:
            return Load.OTHERS
        # Of a worker that was lost the load knows that nothing more will come.
        if self._booked >= self._plan.intended or self._folder.read_live("load").get("stage") in _ALL_ARRIVED:
            return Load.ARRIVED
        return Load.ARRIVING
