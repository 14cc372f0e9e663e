"""Where executions wait: an adapter that serves so many requests at once, and a service with equal workers."""

from collections import deque
from collections.abc import Callable

from harness.simulator.engine.events import EventLoop


class Servers:
    """`count` equal servers and one queue, first come first served; with a count of 0 nobody ever waits."""

    __slots__ = ("_loop", "_waiting", "busy", "count")

    def __init__(self, loop: EventLoop, count: int) -> None:
        self._loop = loop
        self._waiting: deque[tuple[float, Callable[[], None]]] = deque()
        self.count = count
        self.busy = 0

    @property
    def waiting(self) -> int:
        """Requests that nobody serves yet."""
        return len(self._waiting)

    def serve(self, seconds: float, done: Callable[[], None]) -> None:
        """Serve a request that takes so long, and call `done` when that is over."""
        if self.count and self.busy >= self.count:
            self._waiting.append((seconds, done))
            return
        self.busy += 1
        self._loop.after(seconds, self._end, done)

    def _end(self, done: Callable[[], None]) -> None:
        self.busy -= 1
        if self._waiting:
            seconds, following = self._waiting.popleft()
            self.busy += 1
            self._loop.after(seconds, self._end, following)
        done()
