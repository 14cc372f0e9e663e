"""Output for people in the terminal."""

import os
import sys
from typing import TextIO


def say(text: str, out: TextIO | None = None) -> None:
    """Write to `out` or stderr. If its reader has gone (``locust … | head``), the test goes on without output."""
    out = out or sys.stderr
    try:
        out.write(text)
        out.flush()
    except OSError:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, out.fileno())  # also for Locust and child processes
        os.close(null)
