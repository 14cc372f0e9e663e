"""How a worker's records reach the master: a position in their stream, memory, and a spool. It reads no clock.

A record is kept here and in the spool until the master has written it. Positions count the bytes of all records of one
worker in one test, so nothing is booked twice however often it is sent.
"""

from dataclasses import dataclass
from typing import Any

from harness.store.recovery import kind_of_line
from harness.store.spools import Spool

# --- the kinds of messages between a master and its workers. Each names its ``test`` ---------------------------------
# From the master: CLOCK ``{sent}``, GO (`Assignment.pack`), MORE ``{dues, last}``, STOP ``{why, at_once}``, and KEPT
# ``{upto, over, unwanted}``: it has a worker's records up to this position, or does not know the test.
# From a worker: CLOCK_IS ``{sent, here}``, and ROWS ``{at, lines, over, error}``: records from position `at` on; with
# `over` there will be none after them.


GO, MORE, STOP, CLOCK, KEPT = "pipeswarm-go", "pipeswarm-more", "pipeswarm-stop", "pipeswarm-clock", "pipeswarm-kept"
ROWS, CLOCK_IS = "pipeswarm-rows", "pipeswarm-clock-is"

_LATEST = 2**62
_WHOLE: dict[str, tuple[str, ...]] = {ROWS: ("at",), CLOCK_IS: ("sent", "here")}  # fields that are whole numbers


def problem(kind: str, data: object) -> str:
    """What is wrong with a message of a worker; "" if nothing is."""
    if not isinstance(data, dict) or not isinstance(data.get("test"), str):
        return "it names no test"
    for name in _WHOLE[kind]:
        if type(data.get(name)) is not int or not 0 <= data[name] < _LATEST:
            return f"'{name}' is not a position or an instant"
    return _problem_of_rows(data) if kind == ROWS else ""


def _problem_of_rows(data: dict[str, Any]) -> str:
    lines = data.get("lines")
    if not isinstance(lines, bytes) or not isinstance(data.get("over"), bool) or not isinstance(data.get("error"), str):
        return "it has no lines, or does not say whether they are the last"
    if lines and not lines.endswith(b"\n"):
        return "its last record is not complete"
    bad = sum(kind_of_line(line) is None for line in lines.splitlines())
    return f"{bad:,} of its lines are no records" if bad else ""


MASTER_LOST_S = 7.0  # without a sign of life from the master nothing more is sent to the platform
_QUIET_S = 3.0  # nor to the master, except now and then
_RESEND_S = 5.0  # what is not acknowledged by then is sent again
_UNKEPT_S = 2.0  # how long a record may be neither in the spool nor at the master
_MOST_MESSAGE_BYTES = 2**20  # bytes in one message
_ROTATE = 16 * 2**20  # a spool of this size, all of which the master has, is started over


@dataclass(frozen=True, slots=True)
class Batch:
    """Records for the master: those from position `at` on."""

    at: int
    lines: bytes


class Delivery:
    """The records of one worker in one test, in order.

    Attributes:
        end: the position after the last record.
        acknowledged: the position up to which the master has them.
        failure: why the spool takes no records at present.
    """

    def __init__(self, spool: Spool, now_s: float) -> None:
        self._spool = spool
        self._waiting = bytearray()  # the records from `acknowledged` to `end`
        self.end = self.acknowledged = self._sent = 0
        self.failure: OSError | None = None
        self._last_sent = False  # the batch after which there is none
        self._progress_s = now_s  # when the master acknowledged something, or there was nothing to acknowledge

    @property
    def complete(self) -> bool:
        """Whether the master has every record."""
        return self.acknowledged == self.end

    def add(self, line: bytes) -> None:
        """Keep one record."""
        self._waiting += line
        self.end += len(line)
        if self.failure is None:
            self._save()

    def acknowledge(self, position: int, now_s: float) -> None:
        """The master has the records up to `position`."""
        if not self.acknowledged < position <= self.end:
            return
        del self._waiting[: position - self.acknowledged]
        self.acknowledged, self._progress_s = position, now_s
        self._sent = max(self._sent, position)
        if self.complete and self._spool.end - self._spool.start > _ROTATE:
            self._spool.restart(position)  # it starts over with the next record

    def look(self, now_s: float, silent_s: float, *, over: bool = False) -> tuple[Batch | None, str]:
        """What to send to the master now, and why to stop sending to the platform ("" is no reason).

        `silent_s` is how long nothing was heard from the master. Once `over`, no record will be added: then the last
        batch, which may be empty, is sent until the master has answered it.
        """
        if self.failure is not None:
            self._save()
        if self.complete and not over:
            self._progress_s = now_s
        stuck_s = now_s - self._progress_s
        return self._next_batch(now_s, stuck_s, silent_s, over), self._why_stop(stuck_s, silent_s)

    def _next_batch(self, now_s: float, stuck_s: float, silent_s: float, over: bool) -> Batch | None:
        if stuck_s >= _RESEND_S:
            self._sent, self._progress_s, self._last_sent = self.acknowledged, now_s, False
        elif silent_s > _QUIET_S:
            return None
        if self._sent == self.end and (self._last_sent or not over):
            return None
        begin = self._sent - self.acknowledged
        stop = len(self._waiting)
        if stop - begin > _MOST_MESSAGE_BYTES:
            stop = self._waiting.find(b"\n", begin + _MOST_MESSAGE_BYTES) + 1
        batch = Batch(self._sent, bytes(self._waiting[begin:stop]))
        self._sent += len(batch.lines)
        self._last_sent = over and self._sent == self.end
        return batch

    def _why_stop(self, stuck_s: float, silent_s: float) -> str:
        if silent_s >= MASTER_LOST_S:
            return f"the worker had lost its master: no sign of life for {MASTER_LOST_S:g} s"
        if self.failure is not None and stuck_s >= _UNKEPT_S:
            return f"neither the master nor {self._spool.path} took the records ({self.failure.strerror})"
        return ""

    def _save(self) -> None:
        """Bring the spool up to the end; what the master has need not be in it."""
        try:
            if self._spool.end < self.acknowledged:
                self._spool.restart(self.acknowledged)
            self._spool.append(bytes(self._waiting[self._spool.end - self.acknowledged :]))
        except OSError as error:
            self.failure = error
        else:
            self.failure = None
