"""All of Locust's events, one listener each, forwarded to typed code.

The only place of the load that reads the environment and chooses exit codes. `connect` reads as the table of contents:
which event leads where.
"""

import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gevent

from harness.drive import processes, web_tab
from harness.drive.crew import Crew, LocalCrew
from harness.drive.dispatch import Record
from harness.drive.ledger import Finished
from harness.drive.options import register, settings
from harness.drive.preparing import Checked, check
from harness.drive.progress import Progress
from harness.drive.remote import CLOCK, CLOCK_IS, DONE, GO, MORE, ROWS, STOP, RemoteCrew, Station
from harness.drive.session import Session, Stage
from harness.model.concurrency import Concurrency
from harness.model.errors import ConfigError, ExitCode, PipeswarmError
from harness.model.records import Outcome, Submission
from harness.targets.target import find

from locust import events, log
from locust.runners import MasterRunner, WorkerRunner

_SHOW_EVERY_S = 1.0
_FAREWELL_S = 10.0
_WORTH_TELLING_S = 0.01  # of a worker's clock


def connect(target: str) -> None:
    """Wire a load test of `target` to Locust's events."""
    desk = Desk(target)
    events.init_command_line_parser.add_listener(desk.add_options)
    events.init.add_listener(desk.open)
    events.test_start.add_listener(desk.start_test)
    events.test_stopping.add_listener(desk.stop_test)
    events.quitting.add_listener(desk.close)


class RunFailedError(Exception):
    """What Locust's failure statistics show for a run that failed."""


class Desk:
    """One Locust process: master, worker, or both in one."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._platform = find(target)
        self._station: Station | None = None
        self._crew: RemoteCrew | None = None
        self._simulator: processes.Simulator | None = None
        self._fresh = False  # the simulator has not been loaded yet
        self._session: Session | None = None
        self._story: gevent.Greenlet | None = None
        self._environment: Any = None
        self._live: Mapping[str, Any] = {}
        self._interrupted = False
        self._stopping = False  # somebody waits for the end of the test in `stop_test`

    # --- events -------------------------------------------------------------------------------------------------

    def add_options(self, parser: Any, **_: object) -> None:
        """`init_command_line_parser`: our options beside Locust's own."""
        register(parser, self._platform.OPTIONS, self._platform.DEFAULTS)

    def open(self, environment: Any, runner: Any, web_ui: Any, **_: object) -> None:
        """`init`: register messages; without web UI check the configuration now, while nothing has been started."""
        self._environment = environment
        options = environment.parsed_options
        # Our progress line takes the place of the table that Locust prints every two seconds.
        options.only_summary = options.only_summary or not options.print_stats
        if isinstance(runner, WorkerRunner):
            self._open_worker(runner)
            return
        if isinstance(runner, MasterRunner):
            for kind in (ROWS, DONE, CLOCK_IS):
                runner.register_message(kind, self._receive)
        if web_ui is not None:
            web_tab.add(web_ui, self._state, self._report)
        try:
            checked = self._check()
            if not options.headless and not checked.settings.host:
                self._start_simulator(checked)
        except PipeswarmError as error:
            if options.headless:
                self._fail(error)
            sys.stderr.write(f"warning: as the options are now, the test can't start: {error}\n")

    def start_test(self, **_: object) -> None:
        """`test_start`: a new test, in a greenlet of its own."""
        if self._station is None:
            self._story = gevent.spawn(self._tell)
            self._listen_for_interrupts()

    def stop_test(self, **_: object) -> None:
        """`test_stopping`: Stop in the web UI drains, a second Stop does not wait; Locust's ``-t`` is a hard limit.

        Locust's page is told that the test has stopped when it is over, so that it shows the draining until then.
        """
        session = self._session
        if session is None or session.stage is Stage.OVER or gevent.getcurrent() is self._story:
            return
        if self._interrupted:
            session.cut("Interrupted")
        elif self._environment.parsed_options.headless:
            session.cut("TimeLimit")
        elif self._stopping:
            session.cut("Stopped")
        else:
            session.stop()
        self._stopping = True
        self._join()

    def close(self, **_: object) -> None:
        """`quitting`: Ctrl-C and SIGTERM come here with a test still going; it is sealed as interrupted."""
        if self._station is not None:
            self._station.close(_FAREWELL_S)
        if self._story is not None and not self._story.ready():
            if self._session is None:  # still preparing: there is nothing to seal
                self._story.kill()
                self._environment.process_exit_code = int(ExitCode.INTERRUPTED)
            elif self._session.stage is not Stage.OVER:
                self._session.cut("Interrupted")
                self._join()
        if self._simulator is not None:
            self._simulator.stop()
            self._simulator = None

    def _listen_for_interrupts(self) -> None:
        """While a test goes, Ctrl-C is a message: as an exception it would end whatever greenlet it happened to hit."""

        def interrupt() -> None:
            watcher.cancel()
            signal.signal(signal.SIGINT, signal.SIG_DFL)  # a second Ctrl-C ends the process at once
            self._interrupted = True
            environment = self._environment
            if environment.web_ui is not None:
                environment.web_ui.stop()
            else:
                environment.runner.quit()

        self._interrupted = False
        watcher = gevent.signal_handler(signal.SIGINT, interrupt)
        assert self._story is not None
        self._story.link(lambda _: (watcher.cancel(), signal.signal(signal.SIGINT, signal.default_int_handler)))

    # --- a worker -----------------------------------------------------------------------------------------------

    def _open_worker(self, runner: WorkerRunner) -> None:
        station = self._station = Station(runner, self._token(), self._on_row)
        runner.register_message(CLOCK, lambda msg, **_: station.tell_time(msg))
        runner.register_message(GO, lambda msg, **_: station.on_go(msg))
        runner.register_message(MORE, lambda msg, **_: station.on_more(msg))
        runner.register_message(STOP, lambda msg, **_: station.on_stop(msg))

    def _receive(self, msg: Any, **_: object) -> None:
        """A worker's message to the master."""
        if self._crew is not None:
            self._crew.receive(msg)

    # --- a test -------------------------------------------------------------------------------------------------

    def _tell(self) -> None:
        """One test from beginning to end, and what it means for this process."""
        runner = self._environment.runner
        progress = Progress()
        self._stopping = False
        try:
            checked = self._check()
            self._tell_about_users(checked)
            session = self._session = self._new_session(checked)
            shower = gevent.spawn(self._show, session, progress)
            try:
                session.run(self._crew_for)
            finally:
                shower.kill()
                self._publish(session)
                progress.done(self._live, self._observed(session))
            self._conclude(session.exit_code, session.verdict)
        except PipeswarmError as error:
            self._conclude(error.exit_code, f"error: {error}")
        except Exception:
            self._conclude(ExitCode.BUG, "")
            raise
        finally:
            if self._environment.parsed_options.headless:
                runner.quit()
            elif not self._stopping:
                runner.stop()

    def _tell_about_users(self, checked: Checked) -> None:
        users = self._environment.parsed_options.num_users or 1
        if users > 1 and not isinstance(checked.settings.schedule, Concurrency):
            kind = checked.settings.text("schedule")
            sys.stderr.write(
                f"note: -u {users} does not set the rate of runs, the schedule '{kind}' does; one user is enough "
                "(--schedule concurrency keeps as many runs in flight as users)\n"
            )

    def _check(self) -> Checked:
        host = self._environment.host or ""
        if self._simulator is not None and host == self._simulator.url:
            host = ""
        host = host or os.environ.get(self._platform.HOST_VARIABLE, "")
        return check(
            settings(self._environment.parsed_options, host, self._platform.OPTIONS), self._target, self._platform
        )

    def _new_session(self, checked: Checked) -> Session:
        simulated = not checked.settings.host
        if simulated:
            self._start_simulator(checked)
            self._fresh = False
        runner = self._environment.runner
        return Session(
            checked,
            self._platform,
            token=self._token(),
            simulator=self._simulator if simulated else None,
            workers=runner.worker_count if isinstance(runner, MasterRunner) else 1,
            on_finished=self._on_finished,
        )

    def _crew_for(self, session: Session) -> Crew:
        ledger = session.ledger
        assert ledger is not None

        def book(row: Record) -> None:
            if isinstance(row, Submission):
                self._on_row(row)
            if finished := ledger.book(row):
                self._on_finished(finished)

        def book_lines(lines: bytes) -> int:
            before = ledger.counts.recorded
            for finished in ledger.book_lines(lines):
                self._on_finished(finished)
            return ledger.counts.recorded - before

        if not isinstance(self._environment.runner, MasterRunner):
            return LocalCrew(self._token(), book)
        self._crew = RemoteCrew(self._environment.runner, book_lines, session.worker_lost)
        for index, ahead_s in self._crew.greet().items():
            if abs(ahead_s) > _WORTH_TELLING_S:
                told = f"the clock of worker {index} is {ahead_s:+.3f} s off the master's; its stamps are set right"
                session.note("ClockSkew", told)
        return self._crew

    def _start_simulator(self, checked: Checked) -> None:
        """A platform nobody has loaded yet: each test finds it as the profile says."""
        profile, fault = (
            checked.settings.text("simulate") or self._platform.DEFAULTS["simulate"],
            checked.settings.text("fault"),
        )
        old = self._simulator
        if old is not None:
            if self._fresh and (old.profile, old.fault) == (profile, fault):
                return
            old.stop()
            self._simulator = None
        new = processes.start_simulator(profile, fault, checked.settings.seed)
        self._simulator, self._fresh = new, True
        self._environment.host = new.url
        planted = f" with the fault {fault}" if fault else ""
        sys.stderr.write(f"no --host: simulated platform '{profile}'{planted} started at {new.url}\n")

    # --- telling ------------------------------------------------------------------------------------------------

    def _show(self, session: Session, progress: Progress) -> None:
        while True:
            self._publish(session)
            progress.show(self._live, self._observed(session))
            gevent.sleep(_SHOW_EVERY_S)

    def _state(self) -> tuple[Mapping[str, Any], Mapping[str, Any], str]:
        session = self._session
        if session is None:
            return {}, {}, ""
        return self._live, self._observed(session), session.verdict

    @staticmethod
    def _observed(session: Session) -> Mapping[str, Any]:
        return session.folder.read_live("observer") if session.folder else {}

    def _report(self, name: str = "report.html") -> Path | None:
        session = self._session
        return session.folder.path / name if session is not None and session.folder is not None else None

    def _publish(self, session: Session) -> None:
        self._live = session.live()
        if session.folder is not None:
            session.folder.write_live("load", self._live)

    def _on_row(self, row: Submission) -> None:
        """Locust's own statistics, from the due time: no coordinated omission in them either."""
        error = RunFailedError(row.error or row.outcome) if row.outcome is not Outcome.ACCEPTED else None
        latency_ms = (row.answered_at - row.due_at) / 1e6 if row.answered_at is not None else None
        self._fire("SUBMIT", latency_ms, error)

    def _on_finished(self, finished: Finished) -> None:
        error = RunFailedError(finished.error) if finished.error is not None else None
        self._fire("RUN", finished.duration_s * 1e3, error)

    def _fire(self, kind: str, duration_ms: float | None, error: Exception | None) -> None:
        self._environment.events.request.fire(
            request_type=kind,
            name=self._target,
            response_time=duration_ms,
            response_length=0,
            exception=error,
            context={},
            start_time=time.time(),
            url=None,
        )

    def _conclude(self, code: ExitCode, verdict: str) -> None:
        if code is ExitCode.OK and log.unhandled_greenlet_exception:
            sys.stderr.write("error: a listener of Locust's events raised, see above; the results may not be whole\n")
            code = ExitCode.BUG
        self._environment.process_exit_code = int(code)
        self._summarize_for_github()
        out = sys.stderr if verdict.startswith("error:") else sys.stdout
        out.write(f"{verdict.rstrip()}\n" if verdict else "")
        out.write(f"exit code {int(code)}: {code.meaning}\n")
        out.flush()

    def _summarize_for_github(self) -> None:
        """A job's summary page on GitHub gets the report, as its file in ``GITHUB_STEP_SUMMARY`` asks for."""
        summary, page = os.environ.get("GITHUB_STEP_SUMMARY"), self._report("report.md")
        if summary and page is not None and page.is_file():
            with Path(summary).open("a", encoding="utf-8") as out:
                out.write(page.read_text(encoding="utf-8"))

    def _fail(self, error: PipeswarmError) -> None:
        sys.stderr.write(f"error: {error}\nexit code {int(error.exit_code)}: {error.exit_code.meaning}\n")
        # An exception in this listener would be swallowed and end with exit code 0; SystemExit is not.
        sys.exit(int(error.exit_code))

    def _join(self) -> None:
        if self._story is not None and self._story is not gevent.getcurrent():
            self._story.join()

    def _token(self) -> str:
        """The bearer token, from a file or the environment; never an option, which the web page would show."""
        path = getattr(self._environment.parsed_options, "token_file", "")
        if not path:
            return os.environ.get("PIPESWARM_TOKEN", "")
        try:
            return Path(path).read_text(encoding="utf-8").strip()
        except OSError as error:
            raise ConfigError(f"the token file {path} can't be read: {error.strerror}", "see --token-file") from error
