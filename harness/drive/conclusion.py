"""How a test ends for people and for the caller of the process: last words and exit code."""

import logging
import sys
from pathlib import Path
from typing import Any, NoReturn

from harness.drive.console import say
from harness.model.errors import ExitCode, PipeswarmError
from harness.plan.environment import github_summary

from locust import log

_RAISED = "code in the locustfile raised an exception (see the traceback above); the test may not be what was intended"


def refuse(error: PipeswarmError) -> NoReturn:
    """Exit because of a wrong configuration. Locust swallows other exceptions of a listener and would exit with 0."""
    _print(error.exit_code, f"error: {error}")
    sys.exit(int(error.exit_code))


def fail_on_listener_error(environment: Any, **_: object) -> None:
    """`quitting`, after all other listeners: Locust swallows the exceptions of listeners and would exit with 0."""
    if log.unhandled_greenlet_exception and environment.process_exit_code == ExitCode.OK:
        environment.process_exit_code = int(ExitCode.BUG)
        say(f"error: {_RAISED}\n")


class Conclusion:
    """The end of this process's latest test.

    In the web UI another test may follow, so its last words are printed at once. Headless they come after Locust's
    tables, when Locust quits.
    """

    def __init__(self, environment: Any) -> None:
        self._environment = environment
        self._unsaid: tuple[ExitCode, str, str] | None = None  # exit code, verdict, reason if not the code's meaning

    def reach(self, code: ExitCode, verdict: str, summary: Path | None) -> None:
        """A test has ended; `summary` is its report for a GitHub job, if it was written."""
        reason = ""
        if log.unhandled_greenlet_exception:
            say(f"error: {_RAISED}\n")
            if code is ExitCode.OK:
                code, reason = ExitCode.BUG, _RAISED
        self._environment.process_exit_code = int(code)
        _append_to_github_summary(summary)
        self._unsaid = code, verdict, reason
        if not self._environment.parsed_options.headless:
            self._say()
        elif not self._environment.stats.total.num_requests:
            logging.getLogger("locust.stats_logger").disabled = True  # empty tables around an error hide it

    def quit(self, exit_code: int) -> None:
        """Locust has printed its tables and exits with `exit_code`."""
        if self._unsaid is not None and exit_code == ExitCode.BUG and self._unsaid[0] is ExitCode.OK:
            self._unsaid = ExitCode.BUG, self._unsaid[1], _RAISED
        self._say()

    def _say(self) -> None:
        if self._unsaid is not None:
            # With --json Locust writes its statistics to stdout for a program that expects nothing else there.
            _print(*self._unsaid, to_stderr=self._environment.parsed_options.json)
            self._unsaid = None


def _print(code: ExitCode, verdict: str, reason: str = "", *, to_stderr: bool = False) -> None:
    out = sys.stderr if to_stderr or verdict.startswith("error:") else sys.stdout
    lines = f"{verdict.rstrip()}\n" if verdict else ""
    say(f"{lines}exit code {int(code)}: {reason or code.meaning}\n", out)


def _append_to_github_summary(report: Path | None) -> None:
    page = github_summary()
    if page is not None and report is not None:
        with page.open("a", encoding="utf-8") as out:
            out.write(report.read_text(encoding="utf-8"))
