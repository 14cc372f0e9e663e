"""Asking one source again and again: the loop that collectors without a watch share."""

import threading
from collections.abc import Callable

from harness.collectors.source_health import SourceHealth, UnreachableError


class Polling:
    """Calls `ask`, which records what the source shows now, every `every_s` seconds.

    Args:
        contact: named after the source.
        ask: raises `UnreachableError` where the source can't be asked; `contact.lost` tells it of a failure before.
        every_s: between two questions; failures make it longer.
        remembers: the source tells later what happened while it could not be asked, so that nothing is missed.
    """

    def __init__(
        self, contact: SourceHealth, ask: Callable[[], None], every_s: float, *, remembers: bool = False
    ) -> None:
        self._contact = contact
        self._ask = ask
        self._every_s = every_s
        self._remembers = remembers
        self.looked = False  # it has asked, or tried to

    @property
    def lost(self) -> bool:
        """The source can't be reached at present."""
        return self._contact.lost

    def follow(self, stop: threading.Event) -> None:
        """Ask until `stop` is set, and once more then."""
        while not stop.is_set():
            stop.wait(self.attempt())
        self.attempt()
        self._contact.end()

    def attempt(self) -> float:
        """Ask once; the seconds to wait before the next time."""
        try:
            self._ask()
        except UnreachableError as error:
            return max(self._contact.failed(error), self._every_s)
        else:
            self._contact.made(missed=not self._remembers)
        finally:
            self.looked = True
        return self._every_s
