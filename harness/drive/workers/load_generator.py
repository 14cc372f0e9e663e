"""The protocol of load generators, and the `Worker` that sends the arrivals of one process.

Implementations: `local.py` (this process) and `distributed.py` (Locust's workers). Both work from an `Assignment`.
"""

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

import gevent
import gevent.queue

from harness.drive.dispatch.bare_loop import sends_per_s
from harness.drive.dispatch.loop import Clock, Dispatcher, Record, most_at_once
from harness.drive.http.clients import client_of
from harness.drive.session_messages import Due
from harness.drive.workers import descriptors
from harness.model.phases import CONNECT_S, GENERATOR_CPU, GENERATOR_RATE
from harness.model.records import Event, Sample, Submission
from harness.model.scenario import Arrival
from harness.model.text.redaction import Redaction
from harness.plan.assignment import Assignment
from harness.targets.credentials import Credentials
from harness.targets.discovery import find

_MAX_WARM = 1000
# Before the first arrival workers receive their assignment and open connections: to a remote platform over TLS that is
# a few hundred a second.
_LEAD_S, _CONNECTION_S = 1.0, 0.003
_SETTLE_S = 0.1  # from the last connection to the first arrival
_CPU_EVERY_S = 5.0
# Each collection examines all that waits for its time, which takes milliseconds; submissions leave hardly any cycles.
_SELDOM = (50_000, 20, 100)


class LedgerClosedError(Exception):
    """Records came for a test that books none any more."""


class UnwritableError(Exception):
    """Records could not be written to the run folder; the session knows."""


class LoadGenerator(Protocol):
    """Sends the arrivals of a plan."""

    def start(self, assignment: Assignment) -> None:
        """Begin to send; each arrival is booked when it is answered."""
        ...

    def send(self, dues: Sequence[Due], *, last: bool = False) -> None:
        """Send more arrivals of a closed schedule; after the `last` ones there are none."""
        ...

    def stop(self, why: str, *, at_once: bool = False) -> None:
        """Send nothing more; what was not sent is booked as missed because of `why`.

        With `at_once` what was not answered is booked as such, instead of waiting for the answers.
        """
        ...

    def finished(self) -> bool:
        """Whether every arrival that can be booked has been booked."""
        ...


class Worker:
    """Sends the arrivals of one assignment.

    `record` gets each arrival once, the phases and end of runs that end with their response, how fast
    a bare loop sends here, and the CPU use.
    """

    def __init__(self, assignment: Assignment, credentials: Credentials, record: Callable[[Record], None]) -> None:
        plan = assignment.plan
        self._assignment = assignment
        self._record = record
        self._redaction = Redaction((*credentials.secrets(plan.host), *assignment.hidden), plan.redact)
        self._dues: gevent.queue.Queue[Due | None] = gevent.queue.Queue()
        self._client = client_of(plan, credentials, self._slow_connect)
        target = find(plan.target).from_plan(plan)
        self._clock = Clock(assignment.ahead_ns)
        self._dispatcher = Dispatcher(
            target, self._client, self._book, worker=assignment.index,
            max_in_flight=descriptors.open_requests(plan.limits), clock=self._clock, source=plan.target,
            trace=plan.id if plan.traced else "",
        )  # fmt: skip

    def run(self) -> None:
        """Open connections, then send each arrival when it is due; returns when all are booked."""
        worker = {"worker": str(self._assignment.index)}
        self._record(Sample(GENERATOR_RATE, time.time_ns(), sends_per_s(), worker))
        # A full garbage collection over Locust and the scenarios takes up to seconds: it comes before the connections,
        # which take what time is left, and what it has seen is frozen, so that none does during the test.
        gc.collect()
        gc.freeze()
        usual = gc.get_threshold()
        gc.set_threshold(*_SELDOM)
        offsets = self._assignment.offsets
        first_at = self._assignment.t0_at + round((offsets[0] if offsets else 0.0) * 1e9)
        self._client.warm(_warm(offsets), (first_at - self._clock.now()) / 1e9 - _SETTLE_S)
        cpu_watch = gevent.spawn(watch_cpu, str(self._assignment.index), self._record)
        try:
            if self._assignment.closed:
                self._dispatcher.run(self._closed_arrivals())
            else:
                self._dispatcher.run(self._assignment.arrivals(), in_advance=True)
        finally:
            gc.set_threshold(*usual)
            gc.unfreeze()
            cpu_watch.kill()
            self._clock.close()
            self._client.close()

    def send(self, dues: Sequence[Due], *, last: bool) -> None:
        """See `LoadGenerator.send`."""
        for due in dues:
            self._dues.put(due)
        if last:
            self._dues.put(None)

    def stop(self, why: str, *, at_once: bool = False) -> None:
        """See `LoadGenerator.stop`."""
        self._dispatcher.stop(why, at_once=at_once)
        self._dues.put(None)

    def _book(self, record: Record) -> None:
        """Redact the platform's messages: they may repeat what was sent."""
        if isinstance(record, Submission):
            if record.error:
                record = replace(record, error=self._redaction.clean(record.error))
        elif isinstance(record, Event):
            record = replace(record, message=self._redaction.clean(record.message))
        self._record(record)

    def _slow_connect(self, seconds: float) -> None:
        self._record(Sample(CONNECT_S, time.time_ns(), seconds, {"worker": str(self._assignment.index)}))

    def _closed_arrivals(self) -> Iterator[Arrival]:
        for seq, due_s in iter(self._dues.get, None):
            yield self._assignment.arrival(seq, due_s)


def lead_s(offsets: Sequence[float]) -> float:
    """Seconds from the start of the generator to the first arrival of this schedule."""
    return _LEAD_S + _CONNECTION_S * _warm(offsets)


def _warm(offsets: Sequence[float]) -> int:
    """The number of connections to open in advance."""
    return min(most_at_once(offsets), _MAX_WARM)


def watch_cpu(worker: str, record: Callable[[Sample], None]) -> None:
    """Record every few seconds which share of one core this process uses; returns never."""
    while True:
        cpu_s, began_s = time.process_time(), time.monotonic()
        gevent.sleep(_CPU_EVERY_S)
        share = (time.process_time() - cpu_s) / (time.monotonic() - began_s)
        record(Sample(GENERATOR_CPU, time.time_ns(), share, {"worker": worker}))
