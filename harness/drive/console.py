"""Output for people in the terminal."""

import os
import sys
from typing import TextIO

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
