"""Atomic replacement of files, and a lock between processes."""

import errno
import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_PATIENCE_S, _RETRY_S = 1.0, 0.001


def replace(target: Path, content: bytes) -> Path:
    """Write a file as a whole or not at all; readers see the old or the new content."""
    partial = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        partial.write_bytes(content)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
    return target


@contextmanager
def locked(lock: Path) -> Iterator[None]:
    """Hold the file lock `lock`; it is released when the process ends, even by a kill.

    Raises:
        OSError: the lock can't be opened, or is held for longer than a second.
    """
    descriptor = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        _acquire(descriptor, time.monotonic() + _PATIENCE_S)
        yield
    finally:
        os.close(descriptor)


def _acquire(descriptor: int, until_s: float) -> None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until_s:
                raise TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT)) from None
            time.sleep(_RETRY_S)
        else:
            return
