"""Clean-up of what a test created, at a bounded rate: nothing else on the platform is touched."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol, Self, runtime_checkable

from harness.model.errors import ConfigError, TargetUnreachableError
from harness.model.http import Exchange
from harness.targets.target import RejectedError

_TRIES = 3
_TOO_MANY = 429
_BETWEEN_TRIES_S = 1.0


class Cleanup(StrEnum):
    """What is done about the runs of a test."""

    NONE = "none"
    TERMINATE = "terminate"  # runs that are not over are ended
    ARCHIVE = "archive"  # … and all are archived
    DELETE = "delete"  # … and all are deleted

    @classmethod
    def parse(cls, text: str) -> Self:
        """The one of this name.

        Raises:
            ConfigError: there is none.
        """
        try:
            return cls(text)
        except ValueError:
            raise ConfigError(f"'{text}' is no clean-up", f"it is one of {', '.join(cls)}") from None


@runtime_checkable
class Cleaning(Protocol):
    """A target whose runs can be ended, archived and deleted."""

    def clean(self, run: str, how: Cleanup, exchange: Exchange) -> None:
        """Do one thing (`TERMINATE`, `ARCHIVE` or `DELETE`) about one run. A run that is gone is done with.

        Raises:
            RejectedError: the platform answered with an error.
            TargetUnreachableError: there was no answer.
        """
        ...


@dataclass(frozen=True, slots=True)
class Cleaned:
    """What a clean-up did: runs it was about, and those of them it failed for, with the last error."""

    runs: int
    failed: int = 0
    error: str = ""

    def __str__(self) -> str:
        failed = f", {self.failed} could not be: {self.error}" if self.failed else ""
        return f"{self.runs - self.failed} runs were cleaned up{failed}"


def clean_up(
    target: Cleaning,
    runs: Iterable[tuple[str, bool]],
    how: Cleanup,
    exchange: Exchange,
    *,
    rate: float,
    sleep: Callable[[float], None] = time.sleep,
) -> Cleaned:
    """Clean up `runs`, (id, whether it is over), at `rate` requests a second, with patience for a server in trouble."""
    about = failed = 0
    error = ""
    for run, over in runs:
        steps = [Cleanup.TERMINATE] if not over else []
        steps += [how] if how in {Cleanup.ARCHIVE, Cleanup.DELETE} else []
        told = ""
        for step in steps:
            told = _patiently(target, run, step, exchange, sleep) or told
            sleep(1 / rate)
        about += bool(steps)
        failed += bool(told)
        error = told or error
    return Cleaned(about, failed, error)


def _patiently(target: Cleaning, run: str, step: Cleanup, exchange: Exchange, sleep: Callable[[float], None]) -> str:
    """The error of the last try, "" when one succeeded."""
    told = ""
    for attempt in range(_TRIES):
        if attempt:
            sleep(_BETWEEN_TRIES_S * 2 ** (attempt - 1))
        try:
            target.clean(run, step, exchange)
        except TargetUnreachableError as error:
            told = f"{run}: {error.message}"
        except RejectedError as error:
            told = f"{run}: {error.message}"
            if error.status // 100 == 4 and error.status != _TOO_MANY:
                return told  # it will say the same again
        else:
            return ""
    return told
