"""The discrete-event core: a calendar of actions, each due at an instant of simulated time."""

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from math import inf
from typing import Any

Action = Callable[..., Any]
_Due = tuple[float, int, Action, tuple[Any, ...]]  # when, how many were scheduled before it, what

_PAGES_PER_S = 64.0  # a power of two, so that pages begin and end at exact instants


class _Pages(dict[int, list[_Due]]):
    """What is due on each page, in the order of scheduling; `order` is a heap of the pages that there are."""

    def __init__(self) -> None:
        self.order: list[int] = []

    def __missing__(self, page: int) -> list[_Due]:
        heappush(self.order, page)
        empty: list[_Due] = []
        self[page] = empty
        return empty


class EventLoop:
    """Simulated time and what is due in it.

    `now` is in seconds since the simulation's start. Actions due at the same instant run in the order in which they
    were scheduled, so a simulation is a function of its seed. Nothing here reads a clock: whoever calls `run` decides
    how simulated time passes.

    Only what is due on the page at hand is in a heap; what is due later waits unsorted on a page of its own. So the
    heap stays small, and quick, however much is to come (a calendar queue: R. Brown, CACM 31(10), 1988).
    """

    __slots__ = ("_heap", "_page_ends", "_pages", "_scheduled", "_soon", "now")

    def __init__(self) -> None:
        self.now = 0.0
        # Due at this very instant. Whatever the heap holds for it was scheduled before it came, and so goes first.
        self._soon: deque[tuple[Action, tuple[Any, ...]]] = deque()
        self._heap: list[_Due] = []
        self._page_ends = 1 / _PAGES_PER_S  # always later than `now`; what is due before is in the heap
        self._pages = _Pages()
        self._scheduled = 0

    def at(self, when: float, action: Action, *args: Any) -> None:  # whatever the action takes
        """Run ``action(*args)`` at `when`; an instant in the past means now."""
        if when >= self._page_ends:
            self._pages[int(when * _PAGES_PER_S)].append((when, self._scheduled, action, args))
        elif when > self.now:
            heappush(self._heap, (when, self._scheduled, action, args))
        else:
            self._soon.append((action, args))
        self._scheduled += 1

    def after(self, delay_s: float, action: Action, *args: Any) -> None:  # whatever the action takes
        """Run ``action(*args)`` `delay_s` from now."""
        when = self.now + delay_s  # the rest is `at`, which is not called: most actions come this way
        if when >= self._page_ends:
            self._pages[int(when * _PAGES_PER_S)].append((when, self._scheduled, action, args))
        elif when > self.now:
            heappush(self._heap, (when, self._scheduled, action, args))
        else:
            self._soon.append((action, args))
        self._scheduled += 1

    @property
    def next_at(self) -> float:
        """When the next action is due; infinity when there is none."""
        if self._soon:
            return self.now
        return self._heap[0][0] if self._heap or self._turn_page() else inf

    @property
    def pending(self) -> bool:
        """Whether anything is due at all."""
        return bool(self._soon or self._heap or self._pages)

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
        while (heap or self._turn_page()) and heap[0][0] <= until:
            self.now, _, action, args = heappop(heap)
            action(*args)
            if soon:
                self._run_soon()
        if self.now < until < inf:
            self.now = until
            if until >= self._page_ends:  # then nothing is due at all
                self._page_ends = (int(until * _PAGES_PER_S) + 1) / _PAGES_PER_S

    def _turn_page(self) -> bool:
        """Go on to the next page on which something is due; tells whether there is one."""
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
