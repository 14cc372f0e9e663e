"""Files that are replaced as a whole, also by several processes."""

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PATIENCE_S, _TRY_AGAIN_S = 1.0, 0.001


def replace(target: Path, content: bytes) -> Path:
    """Write a file as a whole or not at all: readers see the old one or the new one."""
    partial = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        partial.write_bytes(content)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    return target


@contextmanager
def turn(lock: Path) -> Iterator[None]:
    """The turn of one process among those that name the same `lock`; it ends with the process, even a killed one.

    Raises:
        OSError: the lock can't be had, or whoever has the turn does not end it.
    """
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        _wait(descriptor, time.monotonic() + _PATIENCE_S)
        yield
    finally:
        os.close(descriptor)


def _wait(descriptor: int, until_s: float) -> None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until_s:
                raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT)) from None
            time.sleep(_TRY_AGAIN_S)
        else:
            return
