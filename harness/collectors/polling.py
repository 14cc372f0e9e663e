"""The loop of collectors without a watch: ask one source again and again."""

import threading
from collections.abc import Callable

from harness.collectors.source_health import SourceHealth, UnreachableError


class Polling:
    """Calls `ask`, which records what the source shows now, every `every_s` seconds.

    Args:
        health: of the source.
        ask: raises `UnreachableError` when the source can't be asked.
        every_s: between two calls; longer after failures.
        remembers: the source reports later what happened while it was unreachable, so that nothing is missed.

    Attributes:
        looked: the source was asked at least once, successfully or not.
    """

    def __init__(
        self, health: SourceHealth, ask: Callable[[], None], every_s: float, *, remembers: bool = False
    ) -> None:
        self._health = health
        self._ask = ask
        self._every_s = every_s
        self._remembers = remembers
        self.looked = False

    @property
    def lost(self) -> bool:
        """The source is unreachable at present."""
        return self._health.lost

    def follow(self, stop: threading.Event) -> None:
        """Ask until `stop` is set, and then once more."""
        while not stop.is_set():
            stop.wait(self.attempt())
        self.attempt()
        self._health.end()

    def attempt(self) -> float:
        """Ask once; returns the seconds to wait before the next attempt."""
        asked_at = self._health.now()
        try:
            self._ask()
        except UnreachableError as error:
            return max(self._health.failed(error, asked_at), self._every_s)
        else:
            self._health.answered(missed=not self._remembers, asked_at=asked_at)
        finally:
            self.looked = True
        return self._every_s
