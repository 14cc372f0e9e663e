"""Who sends the arrivals: this process, or workers that Locust connected (`remote`). Both work from the same order."""

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

import gevent
import gevent.queue

from harness.drive.dispatch import Clock, Dispatcher, Record, most_at_once
from harness.drive.http_client import HttpClient
from harness.model.phases import GENERATOR_CPU
from harness.model.records import Event, Sample, Submission
from harness.model.redaction import Redaction
from harness.model.scenario import Arrival
from harness.plan.assignment import Assignment
from harness.targets.target import find

_MOST_WARM = 1000
# Between the last preparation and the first arrival workers get their orders, and open connections: over TLS to a far
# platform a few hundred a second.
_LEAD_S, _CONNECTION_S = 1.0, 0.003
_CPU_EVERY_S = 5.0

# An arrival of a closed schedule: its seq, and when it is due in seconds after t0.
Due = tuple[int, float]


class LoadGenerator(Protocol):
    """Sends the arrivals of a plan."""

    def start(self, order: Assignment) -> None:
        """Begin; the arrivals are booked as they are answered."""
        ...

    def send(self, dues: Sequence[Due], *, last: bool = False) -> None:
        """More arrivals of a closed schedule; after the `last` ones there are none."""
        ...

    def stop(self, why: str) -> None:
        """Send nothing more; what was not sent is booked as missed because of `why`."""
        ...

    def finished(self) -> bool:
        """Whether every arrival that can be booked has been."""
        ...


class Worker:
    """Carries out one order.

    `record` gets each arrival once, what its answer says of a run that is over, and how busy this process is.
    """

    def __init__(self, order: Assignment, token: str, record: Callable[[Record], None]) -> None:
        plan = order.plan
        self._order = order
        self._record = record
        self._redaction = Redaction((token, *order.hidden), plan.redact)
        self._dues: gevent.queue.Queue[Due | None] = gevent.queue.Queue()
        self._carrier = HttpClient(plan.host, token, plan.limits, verify_tls=plan.verify_tls)
        target = find(plan.target).from_plan(plan)
        self._dispatcher = Dispatcher(
            target, self._carrier, self._book, worker=order.index, max_in_flight=plan.limits.max_in_flight,
            clock=Clock(order.ahead_ns), source=plan.target,
        )  # fmt: skip

    def run(self) -> None:
        """Open connections, then send each arrival when it is due; returns when all are booked."""
        self._carrier.warm(_warm(self._order.offsets))
        watch = gevent.spawn(watch_cpu, str(self._order.index), self._record)
        # A full pass of the garbage collector over Locust, the scenarios and all else that stays would hold up arrivals
        # for tens of milliseconds: it looks only at what is new.
        gc.collect()
        gc.freeze()
        try:
            self._dispatcher.run(self._given() if self._order.closed else self._order.arrivals())
        finally:
            gc.unfreeze()
            watch.kill()
            self._carrier.close()

    def send(self, dues: Sequence[Due], *, last: bool) -> None:
        """See `LoadGenerator.send`."""
        for due in dues:
            self._dues.put(due)
        if last:
            self._dues.put(None)

    def stop(self, why: str) -> None:
        """See `LoadGenerator.stop`."""
        self._dispatcher.stop(why)
        self._dues.put(None)

    def _book(self, record: Record) -> None:
        """What the platform said may repeat what it was sent."""
        if isinstance(record, Submission):
            if record.error:
                record = replace(record, error=self._redaction.clean(record.error))
        elif isinstance(record, Event):
            record = replace(record, message=self._redaction.clean(record.message))
        self._record(record)

    def _given(self) -> Iterator[Arrival]:
        for seq, due_s in iter(self._dues.get, None):
            yield self._order.arrival(seq, due_s)


class LocalGenerator:
    """This process sends the arrivals itself."""

    def __init__(self, token: str, record: Callable[[Record], None]) -> None:
        self._token = token
        self._record = record
        self._worker: Worker | None = None
        self._greenlet: gevent.Greenlet | None = None

    def start(self, order: Assignment) -> None:
        """See `LoadGenerator.start`."""
        self._worker = Worker(order, self._token, self._record)
        self._greenlet = gevent.spawn(self._worker.run)

    def send(self, dues: Sequence[Due], *, last: bool = False) -> None:
        """See `LoadGenerator.send`."""
        if self._worker is not None:
            self._worker.send(dues, last=last)

    def stop(self, why: str) -> None:
        """See `LoadGenerator.stop`."""
        if self._worker is not None:
            self._worker.stop(why)

    def finished(self) -> bool:
        """See `LoadGenerator.finished`.

        Raises:
            Exception: what ended the dispatch early; a defect of ours, never an answer of the platform.
        """
        if self._greenlet is None or not self._greenlet.ready():
            return False
        self._greenlet.get()
        return True


def lead_s(offsets: Sequence[float]) -> float:
    """So many seconds before the first arrival of this schedule its order is given."""
    return _LEAD_S + _CONNECTION_S * _warm(offsets)


def _warm(offsets: Sequence[float]) -> int:
    """Connections that are opened in advance."""
    return min(most_at_once(offsets), _MOST_WARM)


def watch_cpu(worker: str, record: Callable[[Sample], None]) -> None:
    """Record how much of one core this process uses, every few seconds, for as long as it is left to."""
    while True:
        used_s, began_s = time.process_time(), time.monotonic()
        gevent.sleep(_CPU_EVERY_S)
        share = (time.process_time() - used_s) / (time.monotonic() - began_s)
        record(Sample(GENERATOR_CPU, time.time_ns(), share, {"worker": worker}))
