"""The event loop: a calendar queue of actions, each due at an instant of simulated time."""

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from math import inf
from typing import Any

Action = Callable[..., Any]
_Due = tuple[float, int, Action, tuple[Any, ...]]  # when, how many were scheduled before it, what

_PAGES_PER_S = 64.0  # a power of two, so that pages begin and end at exact instants


class _Pages(dict[int, list[_Due]]):
    """Actions by page, in the order of scheduling; `order` is a heap of the page numbers in use."""

    def __init__(self) -> None:
        self.order: list[int] = []

    def __missing__(self, page: int) -> list[_Due]:
        heappush(self.order, page)
        empty: list[_Due] = []
        self[page] = empty
        return empty


class EventLoop:
    """Simulated time and the actions due in it.

    `now` is in seconds since the simulation's start. Actions due at the same instant run in the order in which they
    were scheduled, so a simulation is a function of its seed. Nothing here reads a clock: the caller of `run` decides
    how simulated time passes.

    Only the current page is a heap; later pages stay unsorted until their turn. So the heap stays small and fast
    however many actions are pending (a calendar queue: R. Brown, CACM 31(10), 1988).
    """

    __slots__ = ("_heap", "_page_ends", "_pages", "_scheduled", "_soon", "now")

    def __init__(self) -> None:
        self.now = 0.0
        # Due now. Actions in the heap for the same instant were scheduled earlier and run first.
        self._soon: deque[tuple[Action, tuple[Any, ...]]] = deque()
        self._heap: list[_Due] = []
        self._page_ends = 1 / _PAGES_PER_S  # always later than `now`; everything due before it is in the heap
        self._pages = _Pages()
        self._scheduled = 0

    def at(self, when: float, action: Action, *args: Any) -> None:  # the arguments of `action`
        """Run ``action(*args)`` at `when`; an instant in the past means now."""
        if when >= self._page_ends:
            self._pages[int(when * _PAGES_PER_S)].append((when, self._scheduled, action, args))
        elif when > self.now:
            heappush(self._heap, (when, self._scheduled, action, args))
        else:
            self._soon.append((action, args))
        self._scheduled += 1

    def after(self, delay_s: float, action: Action, *args: Any) -> None:  # the arguments of `action`
        """Run ``action(*args)`` `delay_s` seconds from now."""
        when = self.now + delay_s  # the rest repeats `at`: a call would slow the most frequent path
        if when >= self._page_ends:
            self._pages[int(when * _PAGES_PER_S)].append((when, self._scheduled, action, args))
        elif when > self.now:
            heappush(self._heap, (when, self._scheduled, action, args))
        else:
            self._soon.append((action, args))
        self._scheduled += 1

    @property
    def next_at(self) -> float:
        """When the next action is due; infinity if none is."""
        if self._soon:
            return self.now
        return self._heap[0][0] if self._heap or self._turn_page() else inf

    @property
    def pending(self) -> bool:
        """Whether any action is scheduled."""
        return bool(self._soon or self._heap or self._pages)

    @property
    def scheduled(self) -> int:
        """How many actions have been scheduled so far: the size of the simulation."""
        return self._scheduled

    def run(self, until: float = inf) -> None:
        """Run everything due up to and including `until`, and set `now` to `until` unless that is infinity."""
        if until < self.now:
            return
        self._run_soon()
        heap, soon = self._heap, self._soon
        while (heap or self._turn_page()) and heap[0][0] <= until:
            self.now, _, action, args = heappop(heap)
            action(*args)
            if soon:
                self._run_soon()
        if self.now < until < inf:
            self.now = until
            if until >= self._page_ends:  # then no action is left
                self._page_ends = (int(until * _PAGES_PER_S) + 1) / _PAGES_PER_S

    def _turn_page(self) -> bool:
        """Move to the next page with actions; returns whether there is one."""
        if not self._pages:
            return False
        page = heappop(self._pages.order)
        self._heap += sorted(self._pages.pop(page))  # which is a heap, too
        self._page_ends = (page + 1) / _PAGES_PER_S
        return True

    def _run_soon(self) -> None:
        heap, soon = self._heap, self._soon
        while soon and not (heap and heap[0][0] <= self.now):
            action, args = soon.popleft()
            action(*args)
