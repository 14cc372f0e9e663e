"""The closed model without a clock of its own: which slots are free, and since when."""

from collections import deque

from harness.model.concurrency import Concurrency


class Slots:
    """Turns the ends of runs into arrivals: a free slot makes one due, at the moment it became free.

    It is told what ended (`free`) and asked what is due (`due`); others send. Times are seconds after t0.
    """

    def __init__(self, schedule: Concurrency) -> None:
        self._schedule = schedule
        self._changes = deque(schedule.changes())
        self._free: deque[float] = deque()  # since when
        self._excess = 0  # slots that are to go when their run ends
        self.issued = 0

    def due(self, until_s: float) -> list[float]:
        """The arrivals that are due until then and have not been returned before, in order."""
        while self._changes and self._changes[0][0] <= until_s:
            at_s, change = self._changes.popleft()
            if change > 0:
                self._open(at_s)
            elif self._free:
                self._free.pop()
            else:
                self._excess += 1
        most = len(self._free)
        if self._schedule.runs is not None:
            most = min(most, self._schedule.runs - self.issued)
        found = sorted(self._free.popleft() for _ in range(most))
        found = [due_s for due_s in found if due_s < self._schedule.length_s]
        self.issued += len(found)
        return found

    def free(self, count: int, at_s: float) -> None:
        """So many arrivals have come to an end: over, rejected, missed or lost."""
        for _ in range(count):
            self._open(at_s)

    def over(self, now_s: float) -> bool:
        """Whether nothing will be due any more."""
        return now_s >= self._schedule.length_s or self.issued == self._schedule.runs

    def _open(self, at_s: float) -> None:
        if self._excess:
            self._excess -= 1
        else:
            self._free.append(at_s)
