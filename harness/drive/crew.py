"""Who sends the arrivals: this process, or workers that Locust connected. Both work from the same order."""

import os
import tempfile
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import gevent
import gevent.event

from harness.drive.carrier import Carrier
from harness.drive.dispatch import Arrival, Clock, Dispatcher, Record, most_at_once
from harness.model.errors import ConfigError, PipeswarmError
from harness.model.plan import Limits, Plan
from harness.model.records import Submission
from harness.model.scenario import Scenario
from harness.store.folder import encode
from harness.targets.target import find

GO, STOP, ROWS, DONE = "pipeswarm-go", "pipeswarm-stop", "pipeswarm-rows", "pipeswarm-done"
_SHIP_EVERY_S = 0.5
_MOST_WARM = 1000


@dataclass(frozen=True, slots=True)
class Order:
    """All that a worker needs: the plan, the scenarios, when t0 is, and which stripe of the schedule is its own.

    `offsets` are the due times of the whole schedule on the master, of the worker's stripe in a message.
    """

    run: str
    plan: Plan
    scenarios: list[Scenario]
    offsets: "array[float]"
    t0_at: int
    index: int = 0
    count: int = 1

    def stripe(self, index: int, count: int) -> "Order":
        """The part of worker `index` of `count`: every `count`-th arrival."""
        return replace(self, offsets=self.offsets[index::count], index=index, count=count)

    def arrivals(self) -> Iterator[Arrival]:
        """The arrivals of this stripe, scenarios taken in turn over the whole schedule.

        In a second round over the scenarios a run's name gets the round's number, so that names stay distinct.
        """
        for k, due_s in enumerate(self.offsets):
            seq = self.index + k * self.count
            turn, which = divmod(seq, len(self.scenarios))
            scenario = self.scenarios[which]
            if turn:
                scenario = replace(scenario, name=f"{scenario.name}-{turn + 1}")
            yield Arrival(seq, self.t0_at + round(due_s * 1e9), scenario)

    def pack(self) -> dict[str, Any]:
        """Plain values for Locust's messages."""
        return {
            "run": self.run,
            "plan": asdict(self.plan),
            "scenarios": [(s.id, s.name, dict(s.values)) for s in self.scenarios],
            "offsets": self.offsets.tobytes(),
            "t0_at": self.t0_at,
            "index": self.index,
            "count": self.count,
            "version": version("pipeswarm"),
        }

    @classmethod
    def unpack(cls, raw: dict[str, Any]) -> "Order":
        """The order of a message.

        Raises:
            ConfigError: it was made by another version of Pipeswarm.
        """
        if raw["version"] != version("pipeswarm"):
            raise ConfigError(
                f"the master is Pipeswarm {raw['version']}, this worker {version('pipeswarm')}",
                "install the same version on both",
            )
        return cls(
            raw["run"],
            Plan(**{**raw["plan"], "limits": Limits(**raw["plan"]["limits"])}),
            [Scenario(id_, name, values, {}) for id_, name, values in raw["scenarios"]],
            array("d", raw["offsets"]),
            raw["t0_at"],
            raw["index"],
            raw["count"],
        )


class Crew(Protocol):
    """Sends the arrivals of a plan."""

    def start(self, order: Order) -> None:
        """Begin; the arrivals are booked as they are answered."""
        ...

    def stop(self) -> None:
        """Send nothing more; what was not sent is booked as missed."""
        ...

    def finished(self) -> bool:
        """Whether every arrival that can be booked has been."""
        ...


class Worker:
    """Carries out one order; `record` gets each arrival once, and what its answer says of a run that is over."""

    def __init__(self, order: Order, token: str, record: Callable[[Record], None]) -> None:
        plan = order.plan
        self._order = order
        self._carrier = Carrier(plan.host, token, plan.limits, plan.limits.max_in_flight)
        target = find(plan.target).from_plan(plan)
        self._dispatcher = Dispatcher(
            target, self._carrier, record, worker=order.index, max_in_flight=plan.limits.max_in_flight, clock=Clock(),
            source=plan.target,
        )  # fmt: skip

    def run(self) -> None:
        """Open connections, then send each arrival when it is due; returns when all are booked."""
        self._carrier.warm(min(most_at_once(self._order.offsets), _MOST_WARM))
        try:
            self._dispatcher.run(self._order.arrivals())
        finally:
            self._carrier.close()

    def stop(self) -> None:
        """Send nothing more."""
        self._dispatcher.stop()


class LocalCrew:
    """This process sends the arrivals itself."""

    def __init__(self, token: str, record: Callable[[Record], None]) -> None:
        self._token = token
        self._record = record
        self._worker: Worker | None = None
        self._greenlet: gevent.Greenlet | None = None

    def start(self, order: Order) -> None:
        """See `Crew.start`."""
        self._worker = Worker(order, self._token, self._record)
        self._greenlet = gevent.spawn(self._worker.run)

    def stop(self) -> None:
        """See `Crew.stop`."""
        if self._worker is not None:
            self._worker.stop()

    def finished(self) -> bool:
        """See `Crew.finished`.

        Raises:
            Exception: what ended the dispatch early; a defect of ours, never an answer of the platform.
        """
        if self._greenlet is None or not self._greenlet.ready():
            return False
        self._greenlet.get()
        return True


class RemoteCrew:
    """Locust's workers send the arrivals; their rows come back in messages, or out of a dead worker's spool."""

    def __init__(self, runner: Any, book_lines: Callable[[bytes], None], lost: Callable[[int, str], None]) -> None:
        self._runner = runner
        self._book_lines = book_lines
        self._lost = lost
        self._busy: dict[str, tuple[int, Path]] = {}  # client id -> its stripe, its spool
        self._shipped: Counter[str] = Counter()  # client id -> bytes of its spool that have come by message
        self._failures: list[str] = []

    def start(self, order: Order) -> None:
        """See `Crew.start`. Workers that connect later get no arrivals of this test."""
        clients = [c.id for c in (*self._runner.clients.ready, *self._runner.clients.running)]
        for index, client in enumerate(clients):
            self._busy[client] = (index, spool(order.run, index))
        for client, (index, _) in self._busy.items():
            self._runner.send_message(GO, order.stripe(index, len(clients)).pack(), client)

    def stop(self) -> None:
        """See `Crew.stop`."""
        for client in self._busy:
            self._runner.send_message(STOP, {}, client)

    def finished(self) -> bool:
        """See `Crew.finished`. A worker that Locust misses is given up, and its spool read if it is on this machine.

        Raises:
            PipeswarmError: a worker could not carry out its order.
        """
        if self._failures:
            raise PipeswarmError(f"a worker refused its part: {self._failures[0]}")
        for client in list(self._busy):
            known = self._runner.clients.get(client)
            if known is None or known.state == "missing":
                index, spooled = self._busy.pop(client)
                if spooled.is_file():
                    lines = spooled.read_bytes()
                    self._book_lines(lines[self._shipped[client] : lines.rfind(b"\n") + 1])
                    spooled.unlink(missing_ok=True)
                self._lost(index, client)
        return not self._busy

    def on_rows(self, message: Any) -> None:
        """Rows of a worker: kept here for a worker that is still ours."""
        if message.node_id in self._busy:
            self._shipped[message.node_id] += len(message.data["lines"])
            self._book_lines(message.data["lines"])

    def on_done(self, message: Any) -> None:
        """A worker has booked its last arrival, or says why it could not."""
        if message.data.get("error"):
            self._failures.append(message.data["error"])
        self._busy.pop(message.node_id, None)


class Station:
    """The worker's side of `RemoteCrew`: obeys orders, spools every row and ships them in bunches."""

    def __init__(self, runner: Any, token: str, on_row: Callable[[Submission], None]) -> None:
        self._runner = runner
        self._token = token
        self._on_row = on_row
        self._worker: Worker | None = None
        self._waiting: list[bytes] = []

    def on_go(self, message: Any) -> None:
        """Carry out an order; registered as concurrent, so it may take as long as the test."""
        spooled = spool(message.data["run"], message.data["index"])
        descriptor = os.open(spooled, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        error = ""

        def record(row: Record) -> None:
            line = encode(row)
            os.write(descriptor, line)
            self._waiting.append(line)
            if isinstance(row, Submission):
                self._on_row(row)

        shipper = gevent.spawn(self._ship_regularly)
        try:
            self._worker = Worker(Order.unpack(message.data), self._token, record)
            self._worker.run()
        except PipeswarmError as refused:
            error = str(refused)
        finally:
            shipper.kill()
            self._ship()
            self._runner.send_message(DONE, {"error": error})
            os.close(descriptor)
            spooled.unlink(missing_ok=True)
            self._worker = None

    def stop(self) -> None:
        """Send nothing more."""
        if self._worker is not None:
            self._worker.stop()

    def close(self, patience_s: float) -> None:
        """This process ends: stop, and give open requests a moment to be booked."""
        self.stop()
        with gevent.Timeout(patience_s, exception=False):
            while self._worker is not None:
                gevent.sleep(0.05)

    def _ship_regularly(self) -> None:
        while True:
            gevent.sleep(_SHIP_EVERY_S)
            self._ship()

    def _ship(self) -> None:
        if self._waiting:
            lines, self._waiting = b"".join(self._waiting), []
            self._runner.send_message(ROWS, {"lines": lines})


def spool(run: str, index: int) -> Path:
    """Where a worker keeps its rows until the master has them: readable by a master on the same machine."""
    return Path(tempfile.gettempdir()) / f"pipeswarm-{os.getuid()}-{run}-{index}.jsonl"
