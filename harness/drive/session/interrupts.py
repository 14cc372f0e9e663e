"""How a Locust process ends: by Ctrl-C at every moment, quietly and with its exit code, and with its parent."""

import ctypes
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import NoReturn

import gevent

from harness.model.errors import ExitCode

_PDEATHSIG = 1  # PR_SET_PDEATHSIG of prctl(2)


@cache
def end_forks_with_this_process() -> None:
    """Workers of ``--processes`` get SIGTERM when this process is gone, however it ended.

    Locust waits for those that end by themselves within seconds, and forgets the others.
    """

    def follow() -> None:
        with suppress(AttributeError, OSError):  # only Linux has it
            ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGTERM, 0, 0, 0)

    os.register_at_fork(after_in_child=follow)


def exit_quietly() -> None:
    """Until further notice Ctrl-C ends the process without a traceback: nothing has been made yet."""
    signal.signal(signal.SIGINT, _exit)


def leave_to_locust() -> None:
    """Ctrl-C raises KeyboardInterrupt, which Locust handles while no test is running."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def notify(interrupted: Callable[[], None], test: gevent.Greenlet) -> None:
    """While `test` runs, Ctrl-C calls `interrupted`: as an exception it would end whichever greenlet is running.

    A second Ctrl-C ends the process at once.
    """

    def interrupt() -> None:
        watcher.cancel()
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        interrupted()

    watcher = gevent.signal_handler(signal.SIGINT, interrupt)

    def over(_: gevent.Greenlet) -> None:
        watcher.cancel()
        leave_to_locust()

    test.link(over)


def _exit(*_: object) -> NoReturn:
    sys.exit(int(ExitCode.INTERRUPTED))
