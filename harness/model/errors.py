"""Errors made for users, and the exit codes of every process.

PipeswarmError
 ├─ ConfigError              invalid configuration (2)
 └─ TargetUnreachableError   no response, or not that of the platform (5)
"""

from collections.abc import Iterable
from difflib import get_close_matches
from enum import IntEnum


class ExitCode(IntEnum):
    """The exit codes of every Pipeswarm process; `meaning` is printed with them."""

    OK = 0
    BUG = 1
    BAD_CONFIG = 2
    SLO_FAILED = 3
    INVALID = 4
    UNREACHABLE = 5
    INTERRUPTED = 130

    @property
    def meaning(self) -> str:
        """One phrase for people."""
        return _MEANINGS[self]


_MEANINGS = {
    ExitCode.OK: "no SLO missed",
    ExitCode.BUG: "internal error",
    ExitCode.BAD_CONFIG: "invalid configuration; nothing was submitted",
    ExitCode.SLO_FAILED: "SLO missed",
    ExitCode.INVALID: "invalid test: the intended load was not applied; no verdict on the platform",
    ExitCode.UNREACHABLE: "target unreachable, or its response is not that of the platform",
    ExitCode.INTERRUPTED: "interrupted; recorded data is kept",
}


_LONGEST, _HEAD, _TAIL = 600, 400, 100  # characters of a line: untrusted files may hold long names


class PipeswarmError(Exception):
    """An error for the user: what is wrong and where (`message`), and what to do (`hint`)."""

    exit_code = ExitCode.BUG

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        text = f"{self.message}\n  → {self.hint}" if self.hint else self.message
        lines = text.split("\n")
        return "\n".join(f"{line[:_HEAD]} … {line[-_TAIL:]}" if len(line) > _LONGEST else line for line in lines)


def suggestion(given: str, known: Iterable[str]) -> str:
    """The start of a hint: the one of the `known` names that `given` resembles, as a question; "" if none does."""
    close = get_close_matches(given, list(known), 1)
    return f"did you mean '{close[0]}'? " if close else ""


class ConfigError(PipeswarmError):
    """Invalid configuration; raised before the first arrival."""

    exit_code = ExitCode.BAD_CONFIG


class TargetUnreachableError(PipeswarmError):
    """The platform refused the connection, timed out, or its response is not that of its API."""

    exit_code = ExitCode.UNREACHABLE
