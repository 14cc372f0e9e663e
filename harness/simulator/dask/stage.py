"""A stage of work: tasks that idle workers take one after the other, first come first served."""

from collections import deque
from collections.abc import Callable, Hashable, Iterable

from harness.simulator.engine.events import EventLoop


class Stage:
    """Carries out tasks of these lengths (seconds) on the workers that are offered, and calls `done` after the last.

    A worker that leaves in the middle of a task loses it: the task starts over on another one, as in Dask.
    """

    def __init__(self, loop: EventLoop, lengths: Iterable[float], done: Callable[[], None]) -> None:
        self._loop = loop
        self._waiting = deque(lengths)
        self._left = len(self._waiting)
        self._done = done
        self._busy: dict[Hashable, tuple[float, int]] = {}  # by worker: its task, and which start this is
        self._starts = 0
        self._stopped = False

    @property
    def left(self) -> int:
        """How many tasks have not ended."""
        return self._left

    def offer(self, worker: Hashable) -> None:
        """A worker is there: it takes a task unless it has one."""
        if self._stopped or worker in self._busy or not self._waiting:
            return
        length = self._waiting.popleft()
        self._starts += 1
        self._busy[worker] = length, self._starts
        self._loop.after(length, self._ended, worker, self._starts)

    def lose(self, worker: Hashable) -> None:
        """A worker has left; returns its task to the others."""
        if worker in self._busy:
            self._waiting.appendleft(self._busy.pop(worker)[0])

    def stop(self) -> None:
        """Nobody waits for it any more."""
        self._stopped = True
        self._busy.clear()

    def _ended(self, worker: Hashable, start: int) -> None:
        if self._busy.get(worker, (0.0, 0))[1] != start:
            return
        del self._busy[worker]
        self._left -= 1
        if self._left:
            self.offer(worker)
        else:
            self._done()
