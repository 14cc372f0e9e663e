"""What is said to people in the terminal."""

import os
import sys
from typing import TextIO


def say(text: str, out: TextIO | None = None) -> None:
    """Write to `out`, or else to stderr. Who listened may have gone (``locust … | head``): the test goes on then."""
    out = out or sys.stderr
    try:
        out.write(text)
        out.flush()
    except OSError:
        nobody = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nobody, out.fileno())  # for Locust and our child processes, too
        os.close(nobody)
