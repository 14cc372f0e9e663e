"""Sleeps that end within a tenth of a millisecond: the event loop rounds its own timers up to whole milliseconds.

A timer of the kernel (timerfd, Linux) wakes the loop as a socket would. Elsewhere the loop's own timers have to do.
"""

import ctypes
import os
from typing import ClassVar

import gevent

_NONBLOCKING, _CLOSE_ON_EXEC = 0o4000, 0o2000000
_CLOCK_MONOTONIC = 1
_READ = 1


class _Times(ctypes.Structure):
    """An ``itimerspec``: repeated each …, and first after …, in seconds and nanoseconds."""

    _fields_: ClassVar = [(name, ctypes.c_long) for name in ("each_s", "each_ns", "first_s", "first_ns")]


class FineTimer:
    """A timer of one greenlet."""

    def __init__(self) -> None:
        self._fd = -1
        self._libc = ctypes.CDLL(None, use_errno=True)
        if hasattr(self._libc, "timerfd_create"):
            self._fd = self._libc.timerfd_create(_CLOCK_MONOTONIC, _NONBLOCKING | _CLOSE_ON_EXEC)
        if self._fd >= 0:
            self._watcher = gevent.get_hub().loop.io(self._fd, _READ)
        self._times = _Times()

    def sleep(self, seconds: float) -> None:
        """Yield to other greenlets for `seconds`."""
        whole, part = divmod(max(seconds, 0.0), 1.0)
        self._times.first_s, self._times.first_ns = int(whole), int(part * 1e9)
        if self._fd < 0 or self._times.first_s == self._times.first_ns == 0:  # which would stop the timer
            gevent.sleep(max(seconds, 0.0))
            return
        self._libc.timerfd_settime(self._fd, 0, ctypes.byref(self._times), None)
        gevent.get_hub().wait(self._watcher)

    def close(self) -> None:
        """Give the timer back."""
        if self._fd >= 0:
            self._watcher.close()
            os.close(self._fd)
            self._fd = -1
