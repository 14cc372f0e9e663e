"""The closed model without a clock of its own: which slots are free, and since when."""

from collections import deque
from heapq import heappop, heappush
from math import nextafter

from harness.model.schedules import Concurrency


class ConcurrencyLimiter:
    """Turns the ends of runs into arrivals: a free slot makes one due, at the moment it became free.

    It is told what ended (`free`) and asked what is due (`due`); others send. Times are seconds after t0. Whatever the
    schedule says, there are at most `most` arrivals.
    """

    def __init__(self, schedule: Concurrency, most: int | None = None) -> None:
        self._schedule = schedule
        self._most = min((bound for bound in (schedule.runs, most) if bound is not None), default=None)
        self._changes = deque(schedule.changes())
        self._free: list[float] = []  # a heap: from when on
        self._excess = 0  # slots that are to go when their run ends
        self.issued = 0

    def due(self, until_s: float) -> list[float]:
        """The arrivals that are due until then and have not been returned before, in order."""
        while self._changes and self._changes[0][0] <= until_s:
            at_s, change = self._changes.popleft()
            if change > 0:
                self._open(at_s)
            elif self._free:
                self._free.remove(max(self._free))
            else:
                self._excess += 1
        found: list[float] = []
        until_s = min(until_s, nextafter(self._schedule.length_s, 0.0))
        while self._free and self._free[0] <= until_s and self.issued != self._most:
            found.append(heappop(self._free))
            self.issued += 1
        return found

    def free(self, count: int, at_s: float) -> None:
        """So many arrivals have come to an end: over, rejected, missed or lost; their slots are free from `at_s` on."""
        for _ in range(count):
            self._open(at_s)

    def over(self, now_s: float) -> bool:
        """Whether nothing will be due any more."""
        return now_s >= self._schedule.length_s or self.issued == self._most

    def _open(self, at_s: float) -> None:
        if self._excess:
            self._excess -= 1
        else:
            heappush(self._free, at_s)
