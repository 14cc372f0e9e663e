"""What can go wrong, and the exit code that says so.

PipeswarmError
 ├─ ConfigError         what the user gave can't work (2)
 └─ TargetUnreachableError   the platform does not answer as one (5)
"""

from enum import IntEnum


class ExitCode(IntEnum):
    """The exit codes of every Pipeswarm process; `meaning` is printed beside them."""

    OK = 0
    BUG = 1
    BAD_CONFIG = 2
    SLO_FAILED = 3
    INVALID = 4
    UNREACHABLE = 5
    INTERRUPTED = 130

    @property
    def meaning(self) -> str:
        """One sentence a person understands."""
        return _MEANINGS[self]


_MEANINGS = {
    ExitCode.OK: "the test was valid and no SLO was missed",
    ExitCode.BUG: "a defect in Pipeswarm itself",
    ExitCode.BAD_CONFIG: "the configuration can't work; nothing was submitted",
    ExitCode.SLO_FAILED: "the test was valid and an SLO failed",
    ExitCode.INVALID: "the test did not apply the load it promised; no verdict on the platform",
    ExitCode.UNREACHABLE: "the target could not be reached or did not answer as expected",
    ExitCode.INTERRUPTED: "interrupted; what was recorded is kept",
}


class PipeswarmError(Exception):
    """An error made for the user: what is wrong, where, and what to do."""

    exit_code = ExitCode.BUG

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  → {self.hint}" if self.hint else self.message


class ConfigError(PipeswarmError):
    """What the user gave can't work. Raised before the first arrival."""

    exit_code = ExitCode.BAD_CONFIG


class TargetUnreachableError(PipeswarmError):
    """The platform refused, timed out, or answered something that is not its API."""

    exit_code = ExitCode.UNREACHABLE
