"""Clean-up of a test's own runs, at a bounded rate: nothing else on the platform is touched."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from harness.model.errors import TargetUnreachableError
from harness.model.http import Exchange
from harness.targets.target import CleansUp, Cleanup, RejectedError

_ATTEMPTS = 3
_MOST_UNANSWERED = 3  # runs in a row: a platform that is gone would keep thousands of them waiting
_TOO_MANY_REQUESTS = 429
_FIRST_BACKOFF_S = 1.0


@dataclass(frozen=True, slots=True)
class Cleaned:
    """The outcome of a clean-up: the runs it covered, how many of them failed, and the last error."""

    runs: int
    failed: int = 0
    error: str = ""

    def __str__(self) -> str:
        failed = f", {self.failed} failed: {self.error}" if self.failed else ""
        return f"{self.runs - self.failed} runs were cleaned up{failed}"


def clean_up(
    target: CleansUp,
    runs: Iterable[tuple[str, bool]],
    how: Cleanup,
    exchange: Exchange,
    *,
    rate: float,
    sleep: Callable[[float], None] = time.sleep,
) -> Cleaned:
    """Clean up `runs`, (id, whether it has ended), at `rate` requests a second; failed requests are retried.

    A platform that does not answer for some runs in a row is not asked any more: the others have failed, too.
    """
    covered = failed = unanswered = 0
    last_error = ""
    for run, ended in runs:
        steps = [Cleanup.TERMINATE] if not ended else []
        steps += [how] if how in {Cleanup.ARCHIVE, Cleanup.DELETE} else []
        covered += bool(steps)
        if unanswered >= _MOST_UNANSWERED:
            failed += bool(steps)
            continue
        error, answers = "", True
        for step in steps:
            message, answers = _with_retries(target, run, step, exchange, sleep)
            error = message or error
            sleep(1 / rate)
        unanswered = 0 if answers else unanswered + 1
        failed += bool(error)
        last_error = error or last_error
    return Cleaned(covered, failed, last_error)


def _with_retries(
    target: CleansUp, run: str, step: Cleanup, exchange: Exchange, sleep: Callable[[float], None]
) -> tuple[str, bool]:
    """The error of the last attempt, "" when one succeeded, and whether the platform answered it."""
    message, answers = "", True
    for attempt in range(_ATTEMPTS):
        if attempt:
            sleep(_FIRST_BACKOFF_S * 2 ** (attempt - 1))
        try:
            target.clean(run, step, exchange)
        except TargetUnreachableError as error:
            message, answers = f"{run}: {error.message}", False
        except RejectedError as error:
            message, answers = f"{run}: {error.message}", True
            if error.status // 100 == 4 and error.status != _TOO_MANY_REQUESTS:
                break  # another attempt would be rejected as well
        else:
            return "", True
    return message, answers
