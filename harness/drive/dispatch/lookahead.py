"""The arrivals of the next moments, whose requests are made before they are due."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import gevent
import gevent.event

from harness.drive.http.client import Message
from harness.model.scenario import Arrival

_AHEAD_NS = 10**9  # a token is that much older when it is sent
_MOST_REQUESTS = 2_000
_MOST_BYTES = 2**25
_UNKNOWN = 2**16  # bytes of a request, before the first one is made


@dataclass(slots=True, eq=False)
class Planned:
    """An arrival on its way.

    Attributes:
        arrival: what is due, and when.
        due: set when it is sent, from when on its greenlet may go on.
        greenlet: that makes its request in advance; none before it is due otherwise.
        begun: whether the greenlet has begun to run.
        message: its request, once it is made.
        sent_at: when the request was handed to the kernel.
        asked_to_wait: what the answer's Retry-After says, as the end of an error message.
    """

    arrival: Arrival
    due: gevent.event.Event = field(default_factory=gevent.event.Event)
    greenlet: gevent.Greenlet | None = None
    begun: bool = False
    message: Message | None = None
    sent_at: int | None = None
    asked_to_wait: str = ""


class Lookahead:
    """Iterates over arrivals, and begins those of the next second before their turn; bounded in number and bytes.

    Args:
        arrivals: in order of their due times.
        begin: starts the greenlet that makes a request; none where nothing can be done in advance.
    """

    def __init__(self, arrivals: Iterable[Arrival], begin: Callable[[Planned], gevent.Greenlet] | None) -> None:
        self._arrivals = iter(arrivals)
        self._begin = begin
        self._begun: deque[Planned] = deque()
        self._next: Arrival | None = None  # too far ahead as yet
        self._turn: Planned | None = None
        self._longest = 0  # bytes of a request

    def __iter__(self) -> Iterator[Planned]:
        while True:
            if self._begun:
                self._turn = self._begun.popleft()
            elif (arrival := self._take()) is not None:
                self._turn = Planned(arrival)
            else:
                return
            yield self._turn

    def fill(self, now: int) -> None:
        """Begin what is due in the next second; called while the one whose turn it is waits for its time."""
        if self._begin is None:
            return
        if self._turn is not None and self._turn.greenlet is None and self._turn.arrival.due_at <= now + _AHEAD_NS:
            self._turn.greenlet = self._begin(self._turn)
        most = min(_MOST_REQUESTS, _MOST_BYTES // (self._longest or _UNKNOWN))
        while len(self._begun) < most and (arrival := self._take()) is not None:
            if arrival.due_at > now + _AHEAD_NS:
                self._next = arrival
                return
            planned = Planned(arrival)
            planned.greenlet = self._begin(planned)
            self._begun.append(planned)

    def hold(self, planned: Planned, message: Message) -> None:
        """A request was made and waits for its time."""
        planned.message = message
        self._longest = max(self._longest, len(message.content))

    def _take(self) -> Arrival | None:
        arrival, self._next = self._next or next(self._arrivals, None), None
        return arrival
