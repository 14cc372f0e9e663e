"""Load generation by Locust's workers: `DistributedGenerator` on the master, `WorkerEndpoint` on each worker."""

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gevent

from harness.drive.dispatch import Clock, Record
from harness.drive.load_generator import Worker, watch_cpu
from harness.drive.session_messages import STOPPED, Due
from harness.model.errors import PipeswarmError
from harness.model.records import Submission
from harness.plan.assignment import Assignment
from harness.store.folder import encode

# Messages of the master, and of the worker.
GO, MORE, STOP, CLOCK = "pipeswarm-go", "pipeswarm-more", "pipeswarm-stop", "pipeswarm-clock"
ROWS, DONE, CLOCK_IS = "pipeswarm-rows", "pipeswarm-done", "pipeswarm-clock-is"

_SHIP_EVERY_S = 0.5
_SHIP_CLOSED_S = 0.05  # a rejected arrival frees its slot
_CLOCK_PROBES = 5
_CLOCK_TIMEOUT_S = 2.0
_AT_WORK = frozenset({"ready", "spawning", "running"})


@dataclass(slots=True)
class _Assigned:
    """The master's view of one worker of this test."""

    index: int
    spool: Path
    shipped: int = 0  # bytes of its spool that were received as messages
    given: int = 0  # arrivals of a closed schedule
    booked: int = 0  # rows of arrivals that were received


class DistributedGenerator:
    """Locust's workers send the arrivals; their rows come back in messages, or from the spool of a dead worker.

    `book_lines` writes records and returns how many arrivals were among them. `lost` receives the index and the name of
    a dead worker, and how many arrivals of a closed schedule were lost with it. Workers that connect later get no
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
        self._clocks = {client: _ClockOffset() for client in self._clients}
        self._busy: dict[str, _Assigned] = {}
        self._failures: list[str] = []
        self._cpu_watch: gevent.Greenlet | None = None

    def sync_clocks(self) -> dict[int, float]:
        """Ask every worker for the time; returns how many seconds each clock is ahead of ours, by worker index.

        The answer with the shortest round trip counts. Workers correct their timestamps by it.
        """
        for _ in range(_CLOCK_PROBES):
            for client in self._clients:
                self._runner.send_message(CLOCK, {"sent": self._clock.now()}, client)
        with gevent.Timeout(_CLOCK_TIMEOUT_S, exception=False):
            while any(clock.answers < _CLOCK_PROBES for clock in self._clocks.values()):
                gevent.sleep(0.01)
        return {index: self._clocks[client].ahead_ns / 1e9 for index, client in enumerate(self._clients)}

    def start(self, assignment: Assignment) -> None:
        """See `LoadGenerator.start`."""
        count = len(self._clients)
        for index, client in enumerate(self._clients):
            self._busy[client] = _Assigned(index, spool(assignment.run, index))
        for index, client in enumerate(self._clients):
            stripe = assignment.stripe(index, count, self._clocks[client].ahead_ns)
            self._runner.send_message(GO, stripe.pack(), client)
        self._cpu_watch = gevent.spawn(watch_cpu, "master", lambda sample: self._book_lines(encode(sample)))

    def send(self, dues: Sequence[Due], *, last: bool = False) -> None:
        """See `LoadGenerator.send`: dealt in turn to the workers that are left."""
        workers = list(self._busy.items())
        for place, (client, worker) in enumerate(workers):
            dealt = [due for due in dues if due[0] % len(workers) == place]
            worker.given += len(dealt)
            if dealt or last:
                self._runner.send_message(MORE, {"dues": dealt, "last": last}, client)

    def stop(self, why: str) -> None:
        """See `LoadGenerator.stop`."""
        for client in self._busy:
            self._runner.send_message(STOP, {"why": why}, client)

    def finished(self) -> bool:
        """See `LoadGenerator.finished`. A worker that Locust lost is given up; its spool is read if it is here.

        Raises:
            PipeswarmError: a worker could not carry out its assignment.
        """
        if self._failures:
            raise PipeswarmError(f"a worker failed: {self._failures[0]}")
        for client in list(self._busy):
            known = self._runner.clients.get(client)
            if known is None or known.state == "missing":
                self._give_up(client)
        if not self._busy and self._cpu_watch is not None:
            self._cpu_watch.kill()
        return not self._busy

    def _give_up(self, client: str) -> None:
        worker = self._busy.pop(client)
        if worker.spool.is_file():
            lines = worker.spool.read_bytes()
            worker.booked += self._book_lines(lines[worker.shipped : lines.rfind(b"\n") + 1])
            worker.spool.unlink(missing_ok=True)
        self._lost(worker.index, client, max(0, worker.given - worker.booked))

    def receive(self, message: Any) -> None:
        """Take in a worker's message; rows of workers that are not, or no longer, part of this test are ignored."""
        worker = self._busy.get(message.node_id)
        if message.type == CLOCK_IS and message.node_id in self._clocks:
            self._clocks[message.node_id].update(message.data["sent"], message.data["here"], self._clock.now())
        elif message.type == ROWS and worker is not None:
            worker.shipped += len(message.data["lines"])
            worker.booked += self._book_lines(message.data["lines"])
        elif message.type == DONE:
            if message.data.get("error"):
                self._failures.append(message.data["error"])
            self._busy.pop(message.node_id, None)


@dataclass(slots=True)
class _ClockOffset:
    """How far another machine's clock is ahead, by the answer with the shortest round trip."""

    answers: int = 0
    ahead_ns: int = 0
    round_trip_ns: int = 2**63

    def update(self, sent_at: int, there_at: int, received_at: int) -> None:
        """Cristian's algorithm: assume that the other clock was read halfway through the round trip."""
        self.answers += 1
        if received_at - sent_at < self.round_trip_ns:
            self.round_trip_ns = received_at - sent_at
            self.ahead_ns = there_at - (sent_at + received_at) // 2


class WorkerEndpoint:
    """The worker's side of `DistributedGenerator`: carries out assignments, spools each row and ships rows in batches.

    `token_for` returns the bearer token for a host; `on_row` sees each arrival.
    """

    def __init__(self, runner: Any, token_for: Callable[[str], str], on_row: Callable[[Submission], None]) -> None:
        self._runner = runner
        self._token_for = token_for
        self._on_row = on_row
        self._worker: Worker | None = None
        self._descriptor = -1
        self._unshipped: list[bytes] = []

    def register(self) -> None:
        """Receive the master's messages from now on."""
        handlers = ((CLOCK, self._answer_clock), (GO, self._go), (MORE, self._more), (STOP, self._stop))
        for kind, handler in handlers:
            self._runner.register_message(kind, handler)

    def close(self, timeout_s: float) -> None:
        """Stop, and wait up to `timeout_s` until open requests are booked."""
        if self._worker is not None:
            self._worker.stop(STOPPED)
        with gevent.Timeout(timeout_s, exception=False):
            while self._worker is not None:
                gevent.sleep(0.05)

    # --- messages: Locust calls with keywords ---------------------------------------------------------------------

    def _answer_clock(self, msg: Any, **_: object) -> None:
        self._runner.send_message(CLOCK_IS, {"sent": msg.data["sent"], "here": Clock().now()})

    def _go(self, msg: Any, **_: object) -> None:
        try:
            assignment = Assignment.unpack(msg.data)
            token = self._token_for(assignment.plan.host) if assignment.with_token else ""
            self._worker = worker = Worker(assignment, token, self._record)
        except PipeswarmError as refused:
            self._runner.send_message(DONE, {"error": str(refused)})
            return
        gevent.spawn(self._carry_out, assignment, worker)

    def _more(self, msg: Any, **_: object) -> None:
        if self._worker is not None:
            self._worker.send([(seq, due_s) for seq, due_s in msg.data["dues"]], last=msg.data["last"])

    def _stop(self, msg: Any, **_: object) -> None:
        if self._worker is not None:
            self._worker.stop(msg.data["why"])

    # --- an assignment ------------------------------------------------------------------------------------------

    def _carry_out(self, assignment: Assignment, worker: Worker) -> None:
        spooled = spool(assignment.run, assignment.index)
        self._descriptor = os.open(spooled, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        error = ""
        shipper = gevent.spawn(self._ship_every, _SHIP_CLOSED_S if assignment.closed else _SHIP_EVERY_S)
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
        self._unshipped.append(line)
        if isinstance(row, Submission):
            self._on_row(row)

    def _ship_every(self, seconds: float) -> None:
        while True:
            gevent.sleep(seconds)
            self._ship()

    def _ship(self) -> None:
        if self._unshipped:
            lines, self._unshipped = b"".join(self._unshipped), []
            self._runner.send_message(ROWS, {"lines": lines})


def spool(run: str, index: int) -> Path:
    """The file that keeps a worker's rows until the master has them; a master on the same machine can read it."""
    return Path(tempfile.gettempdir()) / f"pipeswarm-{os.getuid()}-{run}-{index}.jsonl"
