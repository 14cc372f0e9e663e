"""Simulated time tied to wall time."""

import asyncio
import time
from math import inf

from harness.simulator.engine.events import EventLoop

_LATE_S = 1.0


class WallClock:
    """Runs an event loop in wall time.

    Call `advance` before reading or changing the simulation from outside: it runs everything due by now. It also wakes
    `run`, since an action scheduled from outside may be due before the one that `run` sleeps for.
    """

    def __init__(self) -> None:
        self.loop = EventLoop()
        self.origin_at = time.time_ns()
        self._origin = time.monotonic()
        self._changed = asyncio.Event()
        self._advancing = False
        self.lag_s = 0.0  # how far the simulation was behind wall time at the last `advance`
        self._worst_lag_s = 0.0

    def drive(self, loop: EventLoop) -> None:
        """Run this event loop from now on."""
        self.loop = loop

    @property
    def now(self) -> float:
        """Wall-clock seconds since the simulation began."""
        return time.monotonic() - self._origin

    @property
    def now_at(self) -> int:
        """The same instant in UTC ns, on the clock of the simulation's timestamps."""
        return self.origin_at + int(self.now * 1e9)

    @property
    def quiet_s(self) -> float:
        """Seconds until the next action is due."""
        return max(0.0, self.loop.next_at - self.now)

    def advance(self) -> None:
        """Run everything due by now."""
        if self._advancing:
            return  # called from an action that it runs
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
        """Keep simulated time in step with wall time, forever."""
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
        """The largest lag in seconds since the last call; 0 if it was a second or less."""
        worst, self._worst_lag_s = self._worst_lag_s, 0.0
        return worst if worst > _LATE_S else 0.0
