"""What a worker does: `WorkerEndpoint` receives the master's messages, an `Order` carries out one assignment.

Orders share nothing: each has its own dispatcher, queue and spool, and every message names its test.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gevent

from harness.drive.console import say
from harness.drive.dispatch.loop import Clock, Record
from harness.drive.session_messages import STOPPED
from harness.drive.workers.delivery import CLOCK, CLOCK_IS, GO, KEPT, MASTER_LOST_S, MORE, ROWS, STOP, Delivery
from harness.drive.workers.load_generator import Worker
from harness.model.errors import PipeswarmError
from harness.model.records import Submission
from harness.plan.assignment import Assignment
from harness.store.folder import encode
from harness.store.spools import Origin, Spool, spool_path
from harness.targets.credentials import Credentials

_SHIP_EVERY_S = 0.5
_SHIP_CLOSED_S = 0.05  # a rejected arrival frees its slot
_AWAKE_S = 1.0  # between two looks of a process that runs: longer, and the machine was paused
_LAST_WORDS_S = 2.0  # for booking open requests as unanswered and handing over the last rows, before the process ends

Send = Callable[[str, dict[str, Any]], None]


class Order:
    """One assignment, until the master has every record of it or does not want them.

    `send` sends a message to the master; `on_row` sees each arrival; `heard_s` says when the master was last heard.
    """

    def __init__(
        self,
        assignment: Assignment,
        credentials: Credentials,
        send: Send,
        on_row: Callable[[Submission], None],
        heard_s: Callable[[], float],
    ) -> None:
        self.test = assignment.plan.id
        self._folder = assignment.run
        self._send = send
        self._on_row = on_row
        self._heard_s = heard_s
        self._every_s = _SHIP_CLOSED_S if assignment.closed else _SHIP_EVERY_S
        self._path = spool_path(self.test, assignment.index)
        self._spool = Spool(self._path, Origin(self.test, Path(assignment.run).name, assignment.index))
        self._looked_s, self._paused_s = time.monotonic(), 0.0
        self._delivery = Delivery(self._spool, self._looked_s)
        self._worker = Worker(assignment, credentials, self._record)
        self._dispatch = gevent.Greenlet(self._worker.run)
        self._stopped = self._unwanted = self._named = False
        self.closed = False

    @property
    def dispatched(self) -> bool:
        """Whether every arrival is booked."""
        return bool(self._dispatch.ready())

    def carry_out(self) -> None:
        """Send the arrivals; return when the master has all records, or has refused them."""
        self._dispatch.start()
        while not (self.closed or self._unwanted):
            self._dispatch.join(self._every_s)
            self._look()
            if self._dispatch.ready():
                gevent.sleep(_SHIP_CLOSED_S)
        if self._unwanted:
            self._dispatch.join()
            self.name_spool()
            self._spool.close()
        else:
            self._spool.remove()

    def more(self, dues: list[tuple[int, float]], *, last: bool) -> None:
        """Send more arrivals of a closed schedule."""
        self._worker.send(dues, last=last)

    def stop(self, why: str, *, at_once: bool = False) -> None:
        """See `LoadGenerator.stop`."""
        self._stopped = True
        self._worker.stop(why, at_once=at_once)

    def kept(self, position: int, *, over: bool, unwanted: bool) -> None:
        """The master has the records up to `position`, all that there will be, or it does not know this test."""
        self._delivery.acknowledge(position, time.monotonic())
        self.closed = self.closed or (over and self._delivery.complete)
        self._unwanted = self._unwanted or unwanted
        if unwanted:
            self.stop(STOPPED)

    def name_spool(self) -> None:
        """Say once where the records are that the master does not have."""
        if self._named or self._delivery.complete:
            return
        self._named = True
        if self._delivery.failure is None:
            say(f"warning: the master does not have all records of this worker; add them to the run folder with\n"
                f"  pipeswarm recover {self._folder} {self._path}\n")  # fmt: skip
        else:
            say(f"error: records were lost: neither the master nor {self._path} took them "
                f"({self._delivery.failure.strerror})\n")  # fmt: skip

    def _record(self, row: Record) -> None:
        self._delivery.add(encode(row))
        if isinstance(row, Submission):
            self._on_row(row)

    def _silent_s(self, now_s: float) -> float:
        """How long nothing was heard from the master, without the time for which this process did not run either."""
        heard_s = self._heard_s()
        paused_s = max(0.0, now_s - max(heard_s, self._looked_s) - _AWAKE_S)
        self._paused_s = paused_s + (0.0 if heard_s > self._looked_s else self._paused_s)
        self._looked_s = now_s
        return now_s - heard_s - self._paused_s

    def _look(self) -> None:
        now_s = time.monotonic()
        over = self._dispatch.ready()
        batch, why = self._delivery.look(now_s, self._silent_s(now_s), over=over)
        if why and not self._stopped:
            say(f"warning: sending is stopped: {why}\n")
            self.stop(why)
        if why and over:
            self.name_spool()
        if batch is not None:
            last = over and batch.at + len(batch.lines) == self._delivery.end
            error = repr(self._dispatch.exception) if over and self._dispatch.exception is not None else ""
            rows = {"test": self.test, "at": batch.at, "lines": batch.lines, "over": last, "error": error}
            self._send(ROWS, rows)


class WorkerEndpoint:
    """The worker's side of `DistributedGenerator`.

    `credentials_for` returns the credentials for a host; `on_row` sees each arrival.
    """

    def __init__(
        self, runner: Any, credentials_for: Callable[[str], Credentials], on_row: Callable[[Submission], None]
    ) -> None:
        self._runner = runner
        self._credentials_for = credentials_for
        self._on_row = on_row
        self._orders: dict[str, Order] = {}
        self._heard_s = time.monotonic()

    def register(self) -> None:
        """Receive the master's messages from now on."""
        handlers = (
            (CLOCK, self._answer_clock),
            (GO, self._go),
            (MORE, self._more),
            (STOP, self._stop),
            (KEPT, self._kept),
        )
        for kind, handler in handlers:
            self._runner.register_message(kind, handler)
        self._runner.environment.events.heartbeat_received.add_listener(self._hear)

    def close(self, timeout_s: float) -> None:
        """Stop; wait up to `timeout_s` for open requests, then book them as unanswered; hand over what is recorded."""
        orders = tuple(self._orders.values())
        if time.monotonic() - self._heard_s < MASTER_LOST_S:
            for order in orders:
                order.stop(STOPPED)
            _wait(timeout_s, lambda: all(order.dispatched for order in orders))
        for order in orders:
            order.stop(STOPPED, at_once=True)
        _wait(_LAST_WORDS_S, lambda: not self._orders)
        for order in self._orders.values():
            order.name_spool()

    def _hear(self, **_: object) -> None:
        self._heard_s = time.monotonic()

    # --- messages: Locust calls with keywords ---------------------------------------------------------------------

    def _answer_clock(self, msg: Any, **_: object) -> None:
        self._runner.send_message(CLOCK_IS, {**msg.data, "here": Clock().now()})

    def _go(self, msg: Any, **_: object) -> None:
        self._hear()
        try:
            assignment = Assignment.unpack(msg.data)
            own = assignment.with_credentials
            credentials = self._credentials_for(assignment.plan.host) if own else Credentials()
            order = Order(assignment, credentials, self._runner.send_message, self._on_row, lambda: self._heard_s)
        except PipeswarmError as refused:
            test = msg.data["plan"].get("id", "")
            message = {"test": test, "at": 0, "lines": b"", "over": True, "error": str(refused)}
            self._runner.send_message(ROWS, message)
            return
        if order.test not in self._orders:
            self._orders[order.test] = order
            gevent.spawn(self._carry_out, order)

    def _carry_out(self, order: Order) -> None:
        try:
            order.carry_out()
        finally:
            self._orders.pop(order.test, None)

    def _more(self, msg: Any, **_: object) -> None:
        if order := self._orders.get(msg.data["test"]):
            order.more([(seq, due_s) for seq, due_s in msg.data["dues"]], last=msg.data["last"])

    def _stop(self, msg: Any, **_: object) -> None:
        if order := self._orders.get(msg.data["test"]):
            order.stop(msg.data["why"], at_once=msg.data["at_once"])

    def _kept(self, msg: Any, **_: object) -> None:
        if order := self._orders.get(msg.data["test"]):
            order.kept(msg.data["upto"], over=msg.data["over"], unwanted=msg.data["unwanted"])


def _wait(timeout_s: float, true: Callable[[], bool]) -> None:
    with gevent.Timeout(timeout_s, exception=False):
        while not true():
            gevent.sleep(0.02)
