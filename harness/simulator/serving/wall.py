"""Simulated time that passes as the wall's does."""

import asyncio
import time
from math import inf

from harness.simulator.engine.events import EventLoop

_LATE_S = 1.0


class WallClock:
    """Runs an event loop so that its seconds are real ones.

    `advance` runs what is due by now: call it before reading or changing the simulation from outside. What was
    scheduled from outside may be due earlier than what `run` sleeps for, so `advance` wakes it.
    """

    def __init__(self) -> None:
        self.loop = EventLoop()
        self.origin_at = time.time_ns()
        self._origin = time.monotonic()
        self._changed = asyncio.Event()
        self._advancing = False
        self.lag_s = 0.0  # how far the simulation was behind the wall when it last looked
        self._worst_lag_s = 0.0

    def drive(self, loop: EventLoop) -> None:
        """From now on run this event loop."""
        self.loop = loop

    @property
    def now(self) -> float:
        """Seconds since the simulation began."""
        return time.monotonic() - self._origin

    @property
    def now_at(self) -> int:
        """The same instant in UTC ns, by the clock that the simulation's stamps come from."""
        return self.origin_at + int(self.now * 1e9)

    @property
    def quiet_s(self) -> float:
        """Seconds until something is due, unless somebody asks for something before."""
        return max(0.0, self.loop.next_at - self.now)

    def advance(self) -> None:
        """Run everything that is due by now."""
        if self._advancing:
            return  # called by what it runs
        self._advancing = True
        try:
            now = self.now
            self.lag_s = max(0.0, now - self.loop.next_at) if self.loop.next_at < inf else 0.0
            self._worst_lag_s = max(self._worst_lag_s, self.lag_s)
            self.loop.run(now)
        finally:
            self._advancing = False
        self._changed.set()

    async def run(self) -> None:
        """Keep simulated time up with the wall, for ever."""
        while True:
            self.advance()
            self._changed.clear()
            wait = self.quiet_s
            try:
                async with asyncio.timeout(None if wait == inf else wait):
                    await self._changed.wait()
            except TimeoutError:
                pass

    def lateness(self) -> float:
        """By how many seconds the simulation was late at worst since this was last asked; 0 where it kept up."""
        worst, self._worst_lag_s = self._worst_lag_s, 0.0
        return worst if worst > _LATE_S else 0.0
