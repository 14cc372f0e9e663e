"""Runs one command and prints what it took and used, as one line of JSON; `clients` starts it for each run.

A script that imports nothing of ours, so that it starts quickly. It adopts the orphans of its command, so that no
process is lost, and ends everything when the load closes its stdin.

Standard input: one line, ``{"argv": […], "time_limit_s": 60.0}``. For the line that it prints see `Ended` in
`harness.targets.command.ended`.
"""

import ctypes
import json
import os
import re
import resource
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import IO, Any

_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER of prctl(2)
_SAMPLE_S = 0.25
_GRACE_S = 2.0  # between SIGTERM and SIGKILL
_ENDING_S = 0.2  # children that end along with the command are not left behind
_KILLING_S = 5.0
_MOST_LINE = 4096
_MOST_PHASES = 100
_MOST_NAME = 200  # characters, also of a remark
_MOST_REMARKS = 5
_BEGINNING = re.compile(rb'\s*\{\s*"(phase|remark)"')
_TAIL = 4096
_MAXRSS = 1 if sys.platform == "darwin" else 1024  # bytes in a unit of ru_maxrss


class Lines:
    """What a command reports in lines of JSON on its standard output.

    ``{"phase": "read", "seconds": 1.5}`` is how long something took, ``{"remark": "the cache was warm"}`` a remark.

    Attributes:
        seconds: by phase, in order of appearance; phases with the same name add up.
        remarks: different ones, in order of appearance.
        unreadable: number of lines that begin like these and can't be read.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.remarks: list[str] = []
        self.unreadable = 0
        self._rest = b""
        self._skipping = False  # the rest of a line that is too long

    def feed(self, chunk: bytes) -> None:
        """Read on. However much is written, only the beginning of the last line is kept."""
        *lines, rest = chunk.split(b"\n")
        for line in lines:
            self._read(self._rest + line)
            self._rest, self._skipping = b"", False
        self._rest += rest if not self._skipping else b""
        if len(self._rest) > _MOST_LINE:
            self._rest, self._skipping = b"", True

    def end(self) -> None:
        """The last line may lack its line break."""
        self._read(self._rest)

    def _read(self, line: bytes) -> None:
        if self._skipping or len(line) > _MOST_LINE or not _BEGINNING.match(line):
            return
        try:
            given = json.loads(line)
            read = self._remark(given["remark"]) if "remark" in given else self._phase(given["phase"], given["seconds"])
        except (ValueError, KeyError, TypeError, RecursionError):
            read = False
        self.unreadable += not read

    def _phase(self, name: object, seconds: float) -> bool:
        known = name in self.seconds or len(self.seconds) < _MOST_PHASES
        if not (isinstance(name, str) and 0 < len(name) <= _MOST_NAME and 0 <= seconds < float("inf") and known):
            return False
        self.seconds[name] = self.seconds.get(name, 0.0) + seconds
        return True

    def _remark(self, text: object) -> bool:
        if not isinstance(text, str) or not text:
            return False
        if text not in self.remarks and len(self.remarks) < _MOST_REMARKS:
            self.remarks.append(text[:_MOST_NAME])
        return True


class Tail:
    """The last bytes of a stream."""

    def __init__(self) -> None:
        self.last = b""

    def feed(self, chunk: bytes) -> None:
        """Read on."""
        self.last = (self.last + chunk)[-_TAIL:]


class Command:
    """A command that was started, in a session of its own.

    Raises:
        OSError: it can't be started.
        ValueError: a word contains a zero byte.
    """

    def __init__(self, argv: list[str], time_limit_s: float) -> None:
        self._began_s = time.monotonic()
        self._process = subprocess.Popen(  # noqa: S603  # what the user wants to run
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
        self._lines, self._errors = Lines(), Tail()
        self._deadline_s = self._began_s + time_limit_s
        self._peak_bytes = 0
        self._abandoned = False
        self._watch = selectors.DefaultSelector()
        for stream, reader in ((self._process.stdout, self._lines), (self._process.stderr, self._errors)):
            assert stream is not None
            os.set_blocking(stream.fileno(), False)
            self._watch.register(stream, selectors.EVENT_READ, reader)
        self._watch.register(sys.stdin.buffer, selectors.EVENT_READ)
        if hasattr(os, "pidfd_open"):  # wakes `select` when the command ends
            self._watch.register(os.pidfd_open(self._process.pid), selectors.EVENT_READ)

    def finish(self) -> dict[str, Any]:
        """Wait for its end, or end it; returns what to print."""
        self._look_until(self._deadline_s)
        over = self._process.poll() is not None
        stubborn = False
        if not over:
            _signal(signal.SIGTERM)
            self._look_until(time.monotonic() + _GRACE_S, even_abandoned=True)
            stubborn = self._process.poll() is None
            if stubborn:
                _signal(signal.SIGKILL)
            self._process.wait()
        took_s = time.monotonic() - self._began_s
        left_behind = _end_the_rest()
        self._drain()
        self._lines.end()
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return {
            "exit_code": self._process.returncode,
            "took_s": took_s,
            "cpu_s": used.ru_utime + used.ru_stime,
            "peak_bytes": max(self._peak_bytes, used.ru_maxrss * _MAXRSS),
            "phases": list(self._lines.seconds.items()),
            "remarks": self._lines.remarks,
            "unreadable": self._lines.unreadable,
            "errors": self._errors.last.decode(errors="replace"),
            "timed_out": not over and not self._abandoned,
            "killed": stubborn,
            "left_behind": left_behind if over else 0,
            "machine": os.uname().nodename,
        }

    def _look_until(self, deadline_s: float, *, even_abandoned: bool = False) -> None:
        """Read its output and sample its memory until it ends, its time is over, or the load has gone."""
        sample_s = time.monotonic() + _SAMPLE_S
        while self._process.poll() is None and (even_abandoned or not self._abandoned):
            now_s = time.monotonic()
            if now_s >= deadline_s:
                return
            if now_s >= sample_s:
                self._peak_bytes = max(self._peak_bytes, sum(_memory()))
                sample_s = time.monotonic() + _SAMPLE_S
            self._read(max(0.0, min(sample_s, deadline_s) - now_s))

    def _read(self, timeout_s: float) -> bool:
        """Read what there is; returns whether there was something."""
        found = False
        for key, _ in self._watch.select(timeout_s):
            if key.fileobj is sys.stdin.buffer:
                self._abandoned = True
                self._watch.unregister(sys.stdin.buffer)
            elif key.data is not None:
                found |= self._feed(key.fileobj, key.data)  # type: ignore[arg-type]  # streams were registered
        return found

    def _feed(self, stream: IO[bytes], reader: Lines | Tail) -> bool:
        chunk = os.read(stream.fileno(), 2**16)
        if not chunk:
            self._watch.unregister(stream)
            return False
        reader.feed(chunk)
        return True

    def _drain(self) -> None:
        """What was written before the end is still in the pipes, which hold no more than a megabyte."""
        for _ in range(64):
            if not self._read(0.0):
                return


def _descendants() -> Iterator[Any]:
    import psutil  # only for commands that last

    yield from psutil.Process().children(recursive=True)


def _memory() -> Iterator[int]:
    """Resident bytes of each process of the command; what several share counts for each."""
    import psutil

    for process in _descendants():
        with suppress(psutil.Error):
            yield process.memory_info().rss


def _signal(number: signal.Signals) -> int:
    """Send a signal to all processes of the command; returns how many there were."""
    import psutil

    count = 0
    for process in _descendants():
        with suppress(psutil.Error):
            if process.status() != psutil.STATUS_ZOMBIE:
                process.send_signal(number)
                count += 1
    return count


def _end_the_rest() -> int:
    """End the processes that the command has left behind; returns how many there were."""
    if _all_reaped(_ENDING_S):
        return 0
    count = _signal(signal.SIGTERM)
    if not _all_reaped(_GRACE_S):
        deadline_s = time.monotonic() + _KILLING_S
        while time.monotonic() < deadline_s:  # one of them may start another
            _signal(signal.SIGKILL)
            if _all_reaped(0.1):
                break
    return count


def _all_reaped(within_s: float) -> bool:
    """Whether all processes of the command are over within this time."""
    deadline_s = time.monotonic() + within_s
    while True:
        try:
            reaped, _ = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return True
        if not reaped:
            if time.monotonic() >= deadline_s:
                return False
            time.sleep(0.01)


def main() -> None:
    """Run the command of the line on standard input."""
    line = sys.stdin.buffer.readline()
    if not line:
        return  # started in advance, and not needed
    request = json.loads(line)
    with suppress(AttributeError, OSError):  # only Linux has it
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    try:
        command = Command(request["argv"], request["time_limit_s"])
    except (OSError, ValueError) as error:
        print(json.dumps({"not_started": getattr(error, "strerror", None) or str(error)}))
        return
    print(json.dumps(command.finish()))


if __name__ == "__main__":
    main()
