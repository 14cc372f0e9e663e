"""Greenlets that send one arrival after the other.

A greenlet maps memory for its Python frames when it begins and unmaps it when it ends, which costs more than the rest
of what a new one does. So they are used again.
"""

from collections.abc import Callable

import gevent
import gevent.event

from harness.drive.dispatch.lookahead import Planned
from harness.model.errors import TargetUnreachableError

_MOST_IDLE = 256  # greenlets that wait for work; what a burst needs beyond that ends with it


class Senders:
    """Runs `send` for each arrival that it is given, in a greenlet that no other arrival uses meanwhile.

    An exception of `send` ends its greenlet, as it would end one of its own.
    """

    def __init__(self, send: Callable[[Planned], None]) -> None:
        self._send = send
        self._idle: list[_Sender] = []

    def give(self, planned: Planned) -> gevent.Greenlet:
        """Send it when other greenlets have had their turn; returns the greenlet, which is the arrival's until then."""
        sender = self._idle.pop() if self._idle else _Sender(self._work)
        sender.planned = planned
        sender.given.set()
        return sender.greenlet

    def close(self) -> None:
        """End the greenlets that wait for work."""
        gevent.killall([sender.greenlet for sender in self._idle], block=False)
        self._idle.clear()

    def _work(self, sender: "_Sender") -> None:
        while True:
            try:
                sender.given.wait()
            except TargetUnreachableError:  # meant for the arrival before, which was answered in the meantime
                self._idle = [each for each in self._idle if each is not sender]
                return
            sender.given.clear()
            assert sender.planned is not None
            self._send(sender.planned)
            sender.planned = None
            if len(self._idle) >= _MOST_IDLE:
                return
            self._idle.append(sender)


class _Sender:
    """A greenlet and what it was given."""

    def __init__(self, work: "Callable[[_Sender], None]") -> None:
        self.planned: Planned | None = None
        self.given = gevent.event.Event()
        self.greenlet = gevent.spawn(work, self)
