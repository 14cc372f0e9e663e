"""Clean-up of a test's own runs, at a bounded rate: nothing else on the platform is touched."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from harness.model.errors import TargetUnreachableError
from harness.model.http import Exchange
from harness.targets.target import CleansUp, Cleanup, RejectedError

_ATTEMPTS = 3
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
    """Clean up `runs`, (id, whether it has ended), at `rate` requests a second; failed requests are retried."""
    covered = failed = 0
    last_error = ""
    for run, ended in runs:
        steps = [Cleanup.TERMINATE] if not ended else []
        steps += [how] if how in {Cleanup.ARCHIVE, Cleanup.DELETE} else []
        error = ""
        for step in steps:
            error = _with_retries(target, run, step, exchange, sleep) or error
            sleep(1 / rate)
        covered += bool(steps)
        failed += bool(error)
        last_error = error or last_error
    return Cleaned(covered, failed, last_error)


def _with_retries(target: CleansUp, run: str, step: Cleanup, exchange: Exchange, sleep: Callable[[float], None]) -> str:
    """The error of the last attempt; "" when one succeeded."""
    message = ""
    for attempt in range(_ATTEMPTS):
        if attempt:
            sleep(_FIRST_BACKOFF_S * 2 ** (attempt - 1))
        try:
            target.clean(run, step, exchange)
        except TargetUnreachableError as error:
            message = f"{run}: {error.message}"
        except RejectedError as error:
            message = f"{run}: {error.message}"
            if error.status // 100 == 4 and error.status != _TOO_MANY_REQUESTS:
                return message  # another attempt would be rejected as well
        else:
            return ""
    return message
