"""What the containers of a test's pod do: one runs the load, the other keeps the run folder until it was taken.

The one holds a lock as long as it lives. The other waits for that lock, so that it learns of any end of the load, even
of one by the out-of-memory killer.
"""

import fcntl
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

_PID = "load.pid"  # the file that is locked
TAKEN = "taken"  # made by who has taken the run folder
_TICK_S = 0.5


@contextmanager
def at_work(state: Path) -> Iterator[None]:
    """Hold the lock; the locked file has the id of this process."""
    new = state / f".{_PID}"
    with new.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        held.write(str(os.getpid()))
        held.flush()
        new.rename(state / _PID)  # whoever finds it, finds it locked
        yield


def run(command: Sequence[str]) -> int:
    """Run the load and return its exit code. SIGTERM and SIGINT reach it as Ctrl-C: it ends by itself."""
    asked = threading.Event()
    started: list[subprocess.Popen[bytes]] = []

    def stop(_number: int, _frame: FrameType | None) -> None:
        asked.set()
        for process in started:
            process.send_signal(signal.SIGINT)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    process = subprocess.Popen(command)  # noqa: S603  # what the manifest says
    started.append(process)
    if asked.is_set():  # while it was started
        process.send_signal(signal.SIGINT)
    code = process.wait()
    return code if code >= 0 else 128 - code  # as a shell reports a signal


def keep(state: Path, keep_s: float, stop: threading.Event) -> bool:
    """Wait until the run folder was taken; False if it was not within `keep_s` of the load's end, or on `stop`."""
    ticks = round(keep_s / _TICK_S)
    while ticks > 0:
        if (state / TAKEN).exists():
            return True
        if stop.wait(_TICK_S):
            return False
        ticks -= _is_over(state)
    return False


def _is_over(state: Path) -> bool:
    try:
        with (state / _PID).open("r+") as held:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (FileNotFoundError, BlockingIOError):
        return False  # not begun, or at work
    return True


def stop_command(state: str) -> list[str]:
    """The command that ends the load, for its container; it waits for a load that is about to begin."""
    file = f"{state}/{_PID}"
    return ["sh", "-c", f"until [ -s {file} ]; do sleep 0.2; done; kill -TERM $(cat {file})"]


def pack_command(runs: str, run: str) -> list[str]:
    """The command that writes the run folder to stdout as a compressed archive."""
    return ["tar", "-cz", "-C", runs, run]


def taken_command(state: str) -> list[str]:
    """The command that lets the pod end."""
    return ["touch", f"{state}/{TAKEN}"]
