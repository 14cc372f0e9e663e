"""Ctrl-C at every moment of a Locust process: quiet, and with the exit code of an interruption."""

import signal
import sys
from collections.abc import Callable
from typing import NoReturn

import gevent

from harness.model.errors import ExitCode


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
