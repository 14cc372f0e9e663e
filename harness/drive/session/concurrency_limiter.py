"""The slots of the closed model: which are free, and since when. It reads no clock."""

from collections import deque
from heapq import heappop, heappush
from math import nextafter

from harness.model.schedules import Concurrency


class ConcurrencyLimiter:
    """Turns the ends of runs into arrivals: a free slot makes one due, at the moment it became free.

    `free` takes what ended, `due` returns what is due. Times are seconds after t0. There are at most `limit` arrivals,
    whatever the schedule says.
    """

    def __init__(self, schedule: Concurrency, limit: int | None = None) -> None:
        self._schedule = schedule
        self._limit = min((bound for bound in (schedule.runs, limit) if bound is not None), default=None)
        self._changes = deque(schedule.changes())
        self._free: list[float] = []  # a heap of the times since when
        self._excess = 0  # slots to remove when their run ends
        self._stages = deque(schedule.stages)
        self._in_flight = 0
        self._ended_s = 0.0  # when the last of them ended
        self.issued = 0

    def due(self, until_s: float) -> list[float]:
        """The due times up to `until_s` that were not returned before, in order."""
        if self._stages and not self._in_flight and self._ended_s <= until_s:
            for _ in range(self._stages.popleft()):
                self._open(self._ended_s)
        while self._changes and self._changes[0][0] <= until_s:
            at_s, change = self._changes.popleft()
            if change > 0:
                self._open(at_s)
            elif self._free:
                self._free.remove(max(self._free))
            else:
                self._excess += 1
        dues: list[float] = []
        until_s = min(until_s, nextafter(self._schedule.length_s, 0.0))
        while self._free and self._free[0] <= until_s and self.issued != self._limit:
            dues.append(heappop(self._free))
            self.issued += 1
            self._in_flight += 1
        return dues

    def free(self, count: int, at_s: float) -> None:
        """`count` arrivals have ended, were rejected, missed or lost: their slots are free from `at_s` on."""
        self._in_flight -= count
        if count > 0:
            self._ended_s = max(self._ended_s, at_s)
        for _ in range(0 if self._schedule.stages else count):
            self._open(at_s)

    def over(self, now_s: float) -> bool:
        """Whether no further arrival will be due."""
        return now_s >= self._schedule.length_s or self.issued == self._limit

    def _open(self, at_s: float) -> None:
        if self._excess:
            self._excess -= 1
        else:
            heappush(self._free, at_s)
