"""The master's link to its workers: each message goes to the test that it names, even after that test's end."""

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import gevent

from harness.drive import processes
from harness.drive.console import say
from harness.drive.dispatch.loop import Clock
from harness.drive.session_messages import Due
from harness.drive.workers.delivery import CLOCK, CLOCK_IS, GO, KEPT, MORE, ROWS, STOP, problem
from harness.drive.workers.load_generator import LedgerClosedError, UnwritableError, watch_cpu
from harness.model.errors import ConfigError, PipeswarmError
from harness.model.records import Sample
from harness.model.text.inert import one_line
from harness.model.units import counted
from harness.plan.assignment import Assignment
from harness.store.folder import RunFolder, encode
from harness.store.recovery import find_folder, merge, merge_spool, unfinished
from harness.store.spools import is_held, leftovers, lines_from, read_spool, spool_path

_CLOCK_PROBES = 5
_CLOCK_TIMEOUT_S = 2.0
_AT_WORK = frozenset({"ready", "spawning", "running"})
_GIVEN_UP = "the master had given up this worker"


@dataclass(slots=True)
class _Assigned:
    """The master's view of one worker of this test."""

    index: int
    have: int = 0  # position up to which its records are written
    given: int = 0  # arrivals of a closed schedule
    booked: int = 0  # rows of arrivals that were received
    lost: bool = False
    over: bool = False


class Books(Protocol):
    """Takes in what workers recorded."""

    def book_lines(self, lines: bytes) -> int:
        """Write records; returns how many arrivals were among them.

        Raises:
            LedgerClosedError: the test books no records any more.
            UnwritableError: the run folder can't be written.
        """
        ...

    def worker_lost(self, index: int, client: str, arrivals: int) -> None:
        """A worker was given up, and with it a number of arrivals of a closed schedule."""
        ...

    def rows_late(self, index: int, client: str, arrivals: int) -> None:
        """So many arrivals were booked of a worker that had been given up."""
        ...


class DistributedGenerator:
    """Locust's workers send the arrivals; their records come back in messages, or from the spool of a dead worker.

    A worker that was given up and comes back is told to stop; its records are booked as late. Workers that connect
    later get no arrivals of this test.

    Raises:
        PipeswarmError: no worker is connected.
    """

    def __init__(self, test: str, runner: Any, books: Books) -> None:
        self._test = test
        self._runner = runner
        self._books = books
        clients = [client.id for client in runner.clients.values() if client.state in _AT_WORK]
        if not clients:
            raise PipeswarmError("no worker is connected", "start some with --worker, or let Locust with --processes 2")
        self._clock = Clock()
        self._clocks = {client: _ClockOffset() for client in clients}
        self._workers = {client: _Assigned(index) for index, client in enumerate(clients)}
        self._failures: list[str] = []

    @property
    def clients(self) -> frozenset[str]:
        """The ids of its workers."""
        return frozenset(self._workers)

    @property
    def _busy(self) -> dict[str, _Assigned]:
        return {client: worker for client, worker in self._workers.items() if not (worker.over or worker.lost)}

    def sync_clocks(self) -> dict[int, float]:
        """Ask every worker for the time; returns how many seconds each clock is ahead of ours, by worker index.

        The answer with the shortest round trip counts. Workers correct their timestamps by it.
        """
        for _ in range(_CLOCK_PROBES):
            for client in self._workers:
                self._send(client, CLOCK, {"sent": self._clock.now()})
        with gevent.Timeout(_CLOCK_TIMEOUT_S, exception=False):
            while any(clock.answers < _CLOCK_PROBES for clock in self._clocks.values()):
                gevent.sleep(0.01)
        return {worker.index: self._clocks[client].ahead_ns / 1e9 for client, worker in self._workers.items()}

    def start(self, assignment: Assignment) -> None:
        """See `LoadGenerator.start`."""
        for client, worker in self._workers.items():
            stripe = assignment.stripe(worker.index, len(self._workers), self._clocks[client].ahead_ns)
            self._runner.send_message(GO, stripe.pack(), client)  # names its test in the plan
        gevent.spawn(self._watch_cpu)

    def send(self, dues: Sequence[Due], *, last: bool = False) -> None:
        """See `LoadGenerator.send`: dealt in turn to the workers that are left."""
        workers = list(self._busy.items())
        for place, (client, worker) in enumerate(workers):
            dealt = [due for due in dues if due[0] % len(workers) == place]
            worker.given += len(dealt)
            if dealt or last:
                self._send(client, MORE, {"dues": dealt, "last": last})

    def stop(self, why: str, *, at_once: bool = False) -> None:
        """See `LoadGenerator.stop`."""
        for client in self._busy:
            self._send(client, STOP, {"why": why, "at_once": at_once})

    def finished(self) -> bool:
        """See `LoadGenerator.finished`. A worker that Locust lost is given up; its spool is read if it is here.

        Raises:
            PipeswarmError: a worker could not carry out its assignment.
        """
        if self._failures:
            raise PipeswarmError(f"a worker failed: {self._failures[0]}")
        for client, worker in self._busy.items():
            known = self._runner.clients.get(client)
            if known is None or known.state == "missing":
                self._give_up(client, worker)
        return not self._busy

    def receive(self, message: Any) -> None:
        """Take in a message of a worker; what a stranger sends is ignored.

        Raises:
            LedgerClosedError, UnwritableError: as of `Books.book_lines`; the worker keeps its records.
        """
        worker = self._workers.get(message.node_id)
        if worker is None:
            return
        if message.type == CLOCK_IS:
            self._clocks[message.node_id].update(message.data["sent"], message.data["here"], self._clock.now())
        elif message.type == ROWS:
            self._receive_rows(message.node_id, worker, message.data)

    def _receive_rows(self, client: str, worker: _Assigned, rows: dict[str, Any]) -> None:
        at, lines = rows["at"], rows["lines"]
        if rows["error"]:
            self._failures.append(rows["error"])
        if at <= worker.have:
            self._book(client, worker, lines[worker.have - at :])
        worker.over = worker.over or (rows["over"] and worker.have == at + len(lines))
        self._send(client, KEPT, {"upto": worker.have, "over": worker.over, "unwanted": False})
        if worker.lost and not worker.over:
            self._send(client, STOP, {"why": _GIVEN_UP, "at_once": False})

    def _give_up(self, client: str, worker: _Assigned) -> None:
        worker.lost = True
        self._send(client, STOP, {"why": _GIVEN_UP, "at_once": False})
        spool = spool_path(self._test, worker.index)
        dead = not is_held(spool)
        lines = lines_from(spool, self._test, worker.index, worker.have)
        with suppress(LedgerClosedError, UnwritableError):
            if lines is not None:
                self._book(client, worker, lines, late=False)
                if dead:
                    spool.unlink(missing_ok=True)
        self._books.worker_lost(worker.index, client, max(0, worker.given - worker.booked))

    def _book(self, client: str, worker: _Assigned, lines: bytes, *, late: bool | None = None) -> None:
        if not lines:
            return
        booked = self._books.book_lines(lines)
        worker.have += len(lines)
        worker.booked += booked
        if booked and (worker.lost if late is None else late):
            self._books.rows_late(worker.index, client, booked)

    def _send(self, client: str, kind: str, data: dict[str, Any]) -> None:
        self._runner.send_message(kind, {**data, "test": self._test}, client)

    def _watch_cpu(self) -> None:
        def record(sample: Sample) -> None:
            self._books.book_lines(encode(sample))

        with suppress(LedgerClosedError, UnwritableError):
            watch_cpu("master", record)


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


def finish_killed(runs_dir: Path) -> None:
    """Write the reports of earlier tests whose load was killed, with the records that it left elsewhere."""
    for folder in unfinished(runs_dir):
        say(f"{folder.path}: its load was killed; its report is written first\n")
        processes.report(folder.path)


class Cluster:
    """Routes the messages of workers.

    Only a test's own workers add to it. Their records of a test that is over are added to its run folder, and its
    report is written again; those of an earlier master's test stay in their spools, which the next start finds.
    """

    def __init__(self, runner: Any, runs_dir: Path) -> None:
        self._runner = runner
        self._runs_dir = runs_dir
        self._test = ""  # the latest one
        self._generator: DistributedGenerator | None = None
        self._tests: dict[str, tuple[RunFolder, frozenset[str]]] = {}  # of this master, with their workers
        self._malformed: Counter[str] = Counter()  # messages by worker
        self._outdated: set[Path] = set()  # folders whose report lacks records
        for kind in (ROWS, CLOCK_IS):
            runner.register_message(kind, self._receive)

    def generator(self, test: str, folder: RunFolder, books: Books) -> DistributedGenerator:
        """The load generator of a test.

        Raises:
            PipeswarmError: no worker is connected.
        """
        self._generator, self._test = DistributedGenerator(test, self._runner, books), test
        self._tests[test] = folder, self._generator.clients
        return self._generator

    def recover_leftovers(self) -> None:
        """Add the spools that dead workers of this machine left to their run folders below `runs_dir`."""
        for path in leftovers():
            try:
                origin, _ = read_spool(path)
                if folder := find_folder(self._runs_dir, origin.test):
                    say(f"{folder.path}: {merge_spool(folder, path)}, from {path}\n")
                    path.unlink(missing_ok=True)
                    self._report(folder)
            except (ConfigError, OSError) as error:
                say(f"warning: the spool {path} stays: {error}\n")

    def _receive(self, msg: Any, **_: object) -> None:
        if wrong := problem(msg.type, msg.data):
            self._refuse(str(msg.node_id), wrong)
            return
        test = msg.data["test"]
        try:
            if test == self._test and self._generator is not None:
                self._generator.receive(msg)
                return
        except UnwritableError:
            return  # the worker keeps what is not acknowledged
        except LedgerClosedError:
            pass
        if msg.type == ROWS:
            self._recover(test, msg.node_id, msg.data)

    def _recover(self, test: str, client: str, rows: dict[str, Any]) -> None:
        """Add records that come too late for their test. Without an answer the worker sends them again."""
        folder, clients = self._tests.get(test, (None, frozenset[str]()))
        folder, upto = folder if client in clients else None, rows["at"]
        if folder is not None:
            try:
                recovered = merge(folder, rows["lines"].splitlines(keepends=True), f"worker {client}")
            except (ConfigError, OSError):
                return
            upto += len(rows["lines"])
            if recovered.records:
                self._outdated.add(folder.path)
                say(f"{folder.path}: {recovered}, from worker {client}\n")
            if rows["over"] and folder.path in self._outdated:
                self._report(folder)
        answer = {"test": test, "upto": upto, "over": rows["over"] and folder is not None, "unwanted": folder is None}
        self._runner.send_message(KEPT, answer, client)

    def _refuse(self, client: str, wrong: str) -> None:
        """Ignore a malformed message; reported once for each worker, and again with each tenfold number of them."""
        self._malformed[client] += 1
        count = self._malformed[client]
        if count == 10 ** (len(str(count)) - 1):
            say(f"warning: {counted(count, 'message')} of worker {one_line(client)} ignored: {wrong}\n")

    def _report(self, folder: RunFolder) -> None:
        self._outdated.discard(folder.path)
        gevent.spawn(processes.report, folder.path)
