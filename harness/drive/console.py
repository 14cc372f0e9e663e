"""Output for people in the terminal."""

import logging
import os
import sys
from typing import Final, TextIO

from harness.model.text.inert import for_output


def say(text: str, out: TextIO | None = None) -> None:
    """Write to `out` or stderr what is no command to a terminal or a CI; see `write`."""
    write(for_output(text), out or sys.stderr)


def write(text: str, out: TextIO) -> None:
    """Write it as it is. If its reader has gone (``locust … | head``), the test goes on without output."""
    try:
        out.write(text)
        out.flush()
    except OSError:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, out.fileno())  # also for Locust and child processes
        os.close(null)


# --- leaves out what Locust logs about users: arrivals come from the schedule, which also ends the test --------------


_ABOUT_USERS: Final = ("No run time limit set", "Ramping to ", "All users spawned")
_LOGGERS: Final = ("locust.main", "locust.runners")


def leave_out_users() -> None:
    """Do so from now on, for a test whose users only follow an open schedule."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_is_not_about_users)


def _is_not_about_users(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith(_ABOUT_USERS)
