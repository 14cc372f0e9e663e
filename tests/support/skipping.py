"""A platform served in this process, whose time passes as on the wall and can be skipped."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from harness.simulator.profile import Profile
from harness.simulator.serve import ServeOptions, build
from harness.simulator.serving import ListenOptions, WallClock, listening


class SkippingClock(WallClock):
    """Wall time, plus what was skipped."""

    def __init__(self) -> None:
        super().__init__()
        self.skipped_s = 0.0

    @property
    def now(self) -> float:
        return super().now + self.skipped_s


class Skippable:
    """The address of a platform, and its time."""

    def __init__(self, url: str, clock: SkippingClock, loop: asyncio.AbstractEventLoop) -> None:
        self.url = url
        self._clock, self._loop = clock, loop

    def skip(self, seconds: float) -> None:
        """Let simulated time pass at once; everything due by then has happened."""

        async def skip() -> None:
            self._clock.skipped_s += seconds
            self._clock.advance()

        asyncio.run_coroutine_threadsafe(skip(), self._loop).result()


@contextmanager
def skippable(profile: Profile) -> Iterator[Skippable]:
    """Serve the platform until the end of the block."""
    found: list[Skippable] = []
    ready, stop = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        clock = SkippingClock()
        app, _ = build(ServeOptions(profile), clock)
        async with listening(app, ListenOptions(), "the platform of the test") as (url, _):
            driving = asyncio.create_task(clock.run())
            found.append(Skippable(url, clock, loop))
            ready.set()
            await stop.wait()
            driving.cancel()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    assert ready.wait(30), "the platform does not start"
    yield found[0]
    loop.call_soon_threadsafe(stop.set)
    thread.join(10)
    loop.close()
