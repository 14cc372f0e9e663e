"""Workers that Locust connected: the master's side (`DistributedGenerator`) and the worker's (`WorkerEndpoint`)."""

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gevent

from harness.drive.dispatch import STOPPED, Clock, Record
from harness.drive.load_generator import Due, Worker, watch_cpu
from harness.model.errors import PipeswarmError
from harness.model.records import Submission
from harness.plan.assignment import Assignment
from harness.store.folder import encode

# Messages of the master, and of the worker.
GO, MORE, STOP, CLOCK = "pipeswarm-go", "pipeswarm-more", "pipeswarm-stop", "pipeswarm-clock"
ROWS, DONE, CLOCK_IS = "pipeswarm-rows", "pipeswarm-done", "pipeswarm-clock-is"

_SHIP_EVERY_S = 0.5
_SHIP_CLOSED_S = 0.05  # a rejected arrival frees its slot
_ASKED_TIMES = 5
_GREETING_S = 2.0
_AT_WORK = frozenset({"ready", "spawning", "running"})


@dataclass(slots=True)
class _Hand:
    """One worker of this test, as the master knows it."""

    index: int
    spool: Path
    shipped: int = 0  # bytes of its spool that have come by message
    given: int = 0  # arrivals of a closed schedule
    booked: int = 0  # rows of arrivals that have come


class DistributedGenerator:
    """Locust's workers send the arrivals; their rows come back in messages, or out of a dead worker's spool.

    `book_lines` writes records and returns how many arrivals were among them; `lost` is told the worker's index, its
    name, and how many of the arrivals it was given one by one nobody will hear of. Workers that connect later get no
    arrivals of this test.

    Raises:
        PipeswarmError: no worker is connected.
    """

    def __init__(self, runner: Any, book_lines: Callable[[bytes], int], lost: Callable[[int, str, int], None]) -> None:
        self._runner = runner
        self._book_lines = book_lines
        self._lost = lost
        self._clients = [client.id for client in runner.clients.values() if client.state in _AT_WORK]
        if not self._clients:
            raise PipeswarmError("no worker is connected", "start some with --worker, or let Locust with --processes 2")
        self._clock = Clock()
        self._clocks = {client: _ClockOf() for client in self._clients}
        self._busy: dict[str, _Hand] = {}
        self._failures: list[str] = []
        self._watch: gevent.Greenlet | None = None

    # --- the crew -----------------------------------------------------------------------------------------------

    def sync_clocks(self) -> dict[int, float]:
        """Ask every worker for the time; returns by how many seconds each one's clock is ahead of ours, by index.

        The answer with the shortest way there and back counts. What a worker stamps is set right by that.
        """
        for _ in range(_ASKED_TIMES):
            for client in self._clients:
                self._runner.send_message(CLOCK, {"sent": self._clock.now()}, client)
        with gevent.Timeout(_GREETING_S, exception=False):
            while any(clock.answers < _ASKED_TIMES for clock in self._clocks.values()):
                gevent.sleep(0.01)
        return {index: self._clocks[client].ahead_ns / 1e9 for index, client in enumerate(self._clients)}

    def start(self, order: Assignment) -> None:
        """See `LoadGenerator.start`."""
        count = len(self._clients)
        for index, client in enumerate(self._clients):
            self._busy[client] = _Hand(index, spool(order.run, index))
        for index, client in enumerate(self._clients):
            part = order.stripe(index, count, self._clocks[client].ahead_ns)
            self._runner.send_message(GO, part.pack(), client)
        self._watch = gevent.spawn(watch_cpu, "master", lambda sample: self._book_lines(encode(sample)))

    def send(self, dues: Sequence[Due], *, last: bool = False) -> None:
        """See `LoadGenerator.send`: in turn among the workers that are there."""
        hands = list(self._busy.items())
        for place, (client, hand) in enumerate(hands):
            part = [due for due in dues if due[0] % len(hands) == place]
            hand.given += len(part)
            if part or last:
                self._runner.send_message(MORE, {"dues": part, "last": last}, client)

    def stop(self, why: str) -> None:
        """See `LoadGenerator.stop`."""
        for client in self._busy:
            self._runner.send_message(STOP, {"why": why}, client)

    def finished(self) -> bool:
        """See `LoadGenerator.finished`. A worker that Locust misses is given up; its spool is read if it is here.

        Raises:
            PipeswarmError: a worker could not carry out its order.
        """
        if self._failures:
            raise PipeswarmError(f"a worker did not do its part: {self._failures[0]}")
        for client in list(self._busy):
            known = self._runner.clients.get(client)
            if known is None or known.state == "missing":
                self._give_up(client)
        if not self._busy and self._watch is not None:
            self._watch.kill()
        return not self._busy

    def _give_up(self, client: str) -> None:
        hand = self._busy.pop(client)
        if hand.spool.is_file():
            lines = hand.spool.read_bytes()
            hand.booked += self._book_lines(lines[hand.shipped : lines.rfind(b"\n") + 1])
            hand.spool.unlink(missing_ok=True)
        self._lost(hand.index, client, max(0, hand.given - hand.booked))

    # --- messages -----------------------------------------------------------------------------------------------

    def receive(self, message: Any) -> None:
        """A worker's message; rows of a worker that is not ours, or not any more, are left aside."""
        hand = self._busy.get(message.node_id)
        if message.type == CLOCK_IS and message.node_id in self._clocks:
            self._clocks[message.node_id].told(message.data["sent"], message.data["here"], self._clock.now())
        elif message.type == ROWS and hand is not None:
            hand.shipped += len(message.data["lines"])
            hand.booked += self._book_lines(message.data["lines"])
        elif message.type == DONE:
            if message.data.get("error"):
                self._failures.append(message.data["error"])
            self._busy.pop(message.node_id, None)


@dataclass(slots=True)
class _ClockOf:
    """What is known of another machine's clock."""

    answers: int = 0
    ahead_ns: int = 0
    trip_ns: int = 2**63

    def told(self, sent_at: int, there_at: int, received_at: int) -> None:
        """Cristian's algorithm: the other clock was read half-way, give or take half of the trip."""
        self.answers += 1
        if received_at - sent_at < self.trip_ns:
            self.trip_ns = received_at - sent_at
            self.ahead_ns = there_at - (sent_at + received_at) // 2


class WorkerEndpoint:
    """The worker's side of `DistributedGenerator`: obeys orders, spools every row and ships them in bunches."""

    def __init__(self, runner: Any, token_for: Callable[[str], str], on_row: Callable[[Submission], None]) -> None:
        self._runner = runner
        self._token_for = token_for
        self._on_row = on_row
        self._worker: Worker | None = None
        self._descriptor = -1
        self._waiting: list[bytes] = []

    def tell_time(self, message: Any) -> None:
        """Say what our clock shows."""
        self._runner.send_message(CLOCK_IS, {"sent": message.data["sent"], "here": Clock().now()})

    def on_go(self, message: Any) -> None:
        """Begin to carry out an order."""
        try:
            order = Assignment.unpack(message.data)
            token = self._token_for(order.plan.host) if order.with_token else ""
            self._worker = worker = Worker(order, token, self._record)
        except PipeswarmError as refused:
            self._runner.send_message(DONE, {"error": str(refused)})
            return
        gevent.spawn(self._carry_out, order, worker)

    def _carry_out(self, order: Assignment, worker: Worker) -> None:
        spooled = spool(order.run, order.index)
        self._descriptor = os.open(spooled, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        error = ""
        shipper = gevent.spawn(self._ship_regularly, _SHIP_CLOSED_S if order.closed else _SHIP_EVERY_S)
        try:
            worker.run()
        except Exception as defect:
            error = repr(defect)
            raise
        finally:
            shipper.kill()
            self._ship()
            self._runner.send_message(DONE, {"error": error})
            os.close(self._descriptor)
            spooled.unlink(missing_ok=True)
            self._worker = None

    def _record(self, row: Record) -> None:
        line = encode(row)
        os.write(self._descriptor, line)
        self._waiting.append(line)
        if isinstance(row, Submission):
            self._on_row(row)

    def on_more(self, message: Any) -> None:
        """Arrivals of a closed schedule."""
        if self._worker is not None:
            self._worker.send([(seq, due_s) for seq, due_s in message.data["dues"]], last=message.data["last"])

    def on_stop(self, message: Any) -> None:
        """Send nothing more."""
        if self._worker is not None:
            self._worker.stop(message.data["why"])

    def close(self, patience_s: float) -> None:
        """This process ends: stop, and give open requests a moment to be booked."""
        if self._worker is not None:
            self._worker.stop(STOPPED)
        with gevent.Timeout(patience_s, exception=False):
            while self._worker is not None:
                gevent.sleep(0.05)

    def _ship_regularly(self, every_s: float) -> None:
        while True:
            gevent.sleep(every_s)
            self._ship()

    def _ship(self) -> None:
        if self._waiting:
            lines, self._waiting = b"".join(self._waiting), []
            self._runner.send_message(ROWS, {"lines": lines})


def spool(run: str, index: int) -> Path:
    """Where a worker keeps its rows until the master has them: readable by a master on the same machine."""
    return Path(tempfile.gettempdir()) / f"pipeswarm-{os.getuid()}-{run}-{index}.jsonl"
