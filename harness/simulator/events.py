"""The discrete-event core: a heap of actions, each due at an instant of simulated time."""

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from math import inf
from typing import Any

Action = Callable[..., Any]


class EventLoop:
    """Simulated time and what is due in it.

    `now` is in seconds since the simulation's start. Actions due at the same instant run in the order in which they
    were scheduled, so a simulation is a function of its seed. Nothing here reads a clock: whoever calls `run` decides
    how simulated time passes.
    """

    __slots__ = ("_heap", "_scheduled", "_soon", "now")

    def __init__(self) -> None:
        self.now = 0.0
        self._heap: list[tuple[float, int, Action, tuple[Any, ...]]] = []
        # Due at this very instant. Whatever the heap holds for it was scheduled before it came, and so goes first.
        self._soon: deque[tuple[Action, tuple[Any, ...]]] = deque()
        self._scheduled = 0

    def at(self, when: float, action: Action, *args: Any) -> None:  # whatever the action takes
        """Run ``action(*args)`` at `when`; an instant in the past means now."""
        if when > self.now:
            heappush(self._heap, (when, self._scheduled, action, args))
        else:
            self._soon.append((action, args))
        self._scheduled += 1

    def after(self, delay_s: float, action: Action, *args: Any) -> None:  # whatever the action takes
        """Run ``action(*args)`` `delay_s` from now."""
        when = self.now + delay_s
        if when > self.now:
            heappush(self._heap, (when, self._scheduled, action, args))
        else:
            self._soon.append((action, args))
        self._scheduled += 1

    @property
    def next_at(self) -> float:
        """When the next action is due; infinity when there is none."""
        if self._soon:
            return self.now
        return self._heap[0][0] if self._heap else inf

    @property
    def pending(self) -> bool:
        """Whether anything is due at all."""
        return bool(self._soon or self._heap)

    @property
    def scheduled(self) -> int:
        """How many actions were ever scheduled: the size of the simulation."""
        return self._scheduled

    def run(self, until: float = inf) -> None:
        """Run everything due up to and including `until`; then it is `until`, unless that is infinity."""
        if until < self.now:
            return
        self._run_soon()
        heap, soon = self._heap, self._soon
        while heap:
            due = heappop(heap)
            when, _, action, args = due
            if when > until:
                heappush(heap, due)
                break
            self.now = when
            action(*args)
            if soon:
                self._run_soon()
        if self.now < until < inf:
            self.now = until

    def _run_soon(self) -> None:
        heap, soon = self._heap, self._soon
        while soon and not (heap and heap[0][0] <= self.now):
            action, args = soon.popleft()
            action(*args)
