"""All of Locust's events, one listener each, forwarded to typed code.

The only place of the load that reads the environment and chooses exit codes. `connect` reads as the table of contents:
which event leads where.
"""

import os
import signal
import sys
from typing import Any, NoReturn

import gevent

from harness.drive import status_reporter, web_tab
from harness.drive.console import say
from harness.drive.dispatch import Record
from harness.drive.distributed import CLOCK, CLOCK_IS, DONE, GO, MORE, ROWS, STOP, DistributedGenerator, WorkerEndpoint
from harness.drive.load_generator import LoadGenerator, LocalGenerator
from harness.drive.local_simulator import LocalSimulator
from harness.drive.locust_statistics import Statistics
from harness.drive.run_setup import LoadTest, RunContext
from harness.drive.session import Session, Stage
from harness.model.errors import ConfigError, ExitCode, PipeswarmError
from harness.model.records import Submission
from harness.plan.options import register, settings
from harness.plan.validate import Checked, check
from harness.targets.bearer import read_token, same_origin, token_for
from harness.targets.target import find

from locust import events, log
from locust.runners import MasterRunner, WorkerRunner

_FAREWELL_S = 10.0
_WORTH_TELLING_S = 0.01  # of a worker's clock
_RAISED = "code of the locustfile raised, see the traceback above; what it was for may not have happened"


def connect(target: str) -> None:
    """Wire a load test of `target` to Locust's events."""
    try:
        desk = LocustPlugin(target)
    except ConfigError as error:
        refuse(error)
    events.init_command_line_parser.add_listener(desk.add_options)
    events.init.add_listener(desk.open)
    events.test_start.add_listener(desk.start_test)
    events.test_stopping.add_listener(desk.stop_test)
    events.quitting.add_listener(desk.close)
    events.quit.add_listener(desk.take_leave)


def refuse(error: PipeswarmError) -> NoReturn:
    """End, because of what was given. Locust would swallow any other exception of a listener, and end with 0."""
    status_reporter.conclude(error.exit_code, f"error: {error}")
    sys.exit(int(error.exit_code))


def _leave(*_: object) -> NoReturn:
    """Ctrl-C while Locust starts: nothing has been made yet."""
    sys.exit(int(ExitCode.INTERRUPTED))


def fail_on_listener_error(environment: Any, **_: object) -> None:
    """`quitting`, after all other listeners: Locust swallows what a listener raises, and would end with 0."""
    if log.unhandled_greenlet_exception and environment.process_exit_code == ExitCode.OK:
        environment.process_exit_code = int(ExitCode.BUG)
        say(f"error: {_RAISED}\n")


# Locust calls these listeners in reverse: what is added before the locustfile adds its own comes after them.
events.quitting.add_listener(fail_on_listener_error)


class LocustPlugin:
    """One Locust process: master, worker, or both in one."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._platform = find(target)
        self._stand_in = LocalSimulator()
        self._teller = status_reporter.StatusReporter()
        self._environment: Any = None
        self._station: WorkerEndpoint | None = None
        self._crew: DistributedGenerator | None = None
        self._session: Session | None = None
        self._story: gevent.Greenlet | None = None
        self._host = self._token_file = ""  # as this process was started with: a web form can't change them
        self._last_words: tuple[ExitCode, str, str] | None = None  # not said yet: code, verdict, why
        self._interrupted = False
        self._stopping = False  # somebody waits for the end of the test in `stop_test`
        self._closing = False

    # --- events -------------------------------------------------------------------------------------------------

    def add_options(self, parser: Any, **_: object) -> None:
        """`init_command_line_parser`: our options beside Locust's own; the web UI asks for them, too."""
        if self._environment is None:
            signal.signal(signal.SIGINT, _leave)  # Locust would show where it was
        register(parser, self._platform)

    def open(self, environment: Any, runner: Any, web_ui: Any, **_: object) -> None:
        """`init`: register messages; without web UI check the configuration now, while nothing has been started."""
        self._environment = environment
        self._statistics = Statistics(environment, self._target)
        options = environment.parsed_options
        self._host = environment.host or os.environ.get(self._platform.HOST_VARIABLE, "")
        self._token_file = getattr(options, "token_file", "")
        # Our progress line takes the place of the table that Locust prints every two seconds.
        options.only_summary = options.only_summary or not options.print_stats
        if isinstance(runner, WorkerRunner):
            self._open_worker(runner)
        else:
            self._open_desk(runner, web_ui)
        if not options.headless or options.worker:  # else nothing happens before the test begins
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def _open_desk(self, runner: Any, web_ui: Any) -> None:
        environment = self._environment
        options = environment.parsed_options
        if isinstance(runner, MasterRunner):
            for kind in (ROWS, DONE, CLOCK_IS):
                runner.register_message(kind, self._receive)
        if web_ui is not None:
            try:
                web_tab.demand_address(web_ui.host, web_ui.port)
            except ConfigError as error:
                refuse(error)
            web_tab.add(web_ui, self._teller)
        try:
            checked = self._check()
            if not options.headless and not checked.settings.host:
                environment.host = self._stand_in.prepare(*self._profile(checked)).url
        except PipeswarmError as error:
            if options.headless:
                refuse(error)
            told = f"as the options are now, the test can't start: {error}"
            self._teller.refuse(told)
            say(f"warning: {told}\n")

    def start_test(self, environment: Any, **_: object) -> None:
        """`test_start`: a new test, in a greenlet of its own. A worker may be told of it even before `init`."""
        if not environment.parsed_options.worker:
            self._session = None
            self._story = gevent.spawn(self._tell)
            self._listen_for_interrupts(self._story)

    def stop_test(self, **_: object) -> None:
        """`test_stopping`: Stop in the web UI drains, a second Stop does not wait; Locust's ``-t`` is a hard limit.

        Locust's page is told that the test has stopped when it is over, so that it shows the draining until then.
        """
        session = self._session
        if session is None or session.stage is Stage.OVER or gevent.getcurrent() is self._story:
            return
        if self._interrupted:
            self._interrupt()
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
        self._closing = True
        self._interrupt()
        self._join()
        self._stand_in.stop()

    def take_leave(self, exit_code: int, **_: object) -> None:
        """`quit`: Locust has printed its tables, and what is said now stands below them."""
        if self._last_words is not None and exit_code == ExitCode.BUG and self._last_words[0] is ExitCode.OK:
            self._last_words = ExitCode.BUG, self._last_words[1], _RAISED
        self._say_last_words()

    # --- interrupts ---------------------------------------------------------------------------------------------

    def _listen_for_interrupts(self, story: gevent.Greenlet) -> None:
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
        story.link(lambda _: (watcher.cancel(), signal.signal(signal.SIGINT, signal.default_int_handler)))

    def _interrupt(self) -> None:
        """End the test that is going, if one is: at once while there is nothing to seal yet."""
        if self._story is None or self._story.ready() or self._story is gevent.getcurrent():
            return
        if self._session is None or self._session.empty:
            self._conclude(ExitCode.INTERRUPTED, "")  # first: the story's end ends the process
            self._story.kill()
        elif self._session.stage is not Stage.OVER:
            self._session.interrupt()

    # --- a worker -----------------------------------------------------------------------------------------------

    def _open_worker(self, runner: WorkerRunner) -> None:
        def token(host: str) -> str:  # a worker that was given no host of its own trusts its master's
            return token_for(host, self._host or host, self._read_token)

        station = self._station = WorkerEndpoint(runner, token, self._statistics.row)
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
        self._stopping = False
        self._teller.begin()
        try:
            checked = self._check()
            say(checked.settings.ignored_options())
            session = self._session = Session(checked, self._means(checked), on_finished=self._statistics.finished)
            self._teller.follow(session)
            try:
                session.run(self._crew_for)
            finally:
                self._teller.done()
            self._conclude(session.exit_code, session.verdict)
        except PipeswarmError as error:
            self._teller.refuse(f"error: {error}")
            self._conclude(error.exit_code, f"error: {error}")
        except Exception:
            self._conclude(ExitCode.BUG, "")
            raise
        finally:
            if self._closing:
                pass  # Locust is ending already
            elif self._environment.parsed_options.headless:
                runner.quit()
            elif not self._stopping:
                runner.stop()

    def _check(self) -> Checked:
        host = self._environment.host or ""
        if host == self._stand_in.url:
            host = ""
        host = host or os.environ.get(self._platform.HOST_VARIABLE, "")
        given = settings(self._environment.parsed_options, host, self._platform)
        return check(given, self._target, self._platform)

    def _means(self, checked: Checked) -> RunContext:
        simulator = None
        if not checked.settings.host:
            simulator = self._stand_in.load(*self._profile(checked))
            self._environment.host = simulator.url
        runner = self._environment.runner
        workers = runner.worker_count if isinstance(runner, MasterRunner) else 1
        host = simulator.url if simulator else checked.settings.host
        means = RunContext(
            self._platform, self._token(host), same_origin(host, self._host), simulator=simulator, workers=workers
        )
        if not means.with_token and not simulator and self._read_token():
            told = f"{host} gets no bearer token: it was given for {self._host or 'no host'}"
            say(f"warning: {told}; start with --host {host} to send it there\n")
            self._teller.warn(told)
        return means

    def _profile(self, checked: Checked) -> tuple[str, str, int]:
        given = checked.settings
        return given.simulate, given.fault, given.seed

    def _crew_for(self, test: LoadTest, session: Session) -> LoadGenerator:
        """Who sends the arrivals, and how their rows get into the ledger and Locust's statistics."""
        ledger = test.ledger

        def book(row: Record) -> None:
            if isinstance(row, Submission):
                self._statistics.row(row)
            with session.recording():
                if finished := ledger.book(row):
                    self._statistics.finished(finished)

        def book_lines(lines: bytes) -> int:
            before = ledger.counts.recorded
            with session.recording():
                for finished in ledger.book_lines(lines):
                    self._statistics.finished(finished)
            return ledger.counts.recorded - before

        if not isinstance(self._environment.runner, MasterRunner):
            return LocalGenerator(self._token(test.plan.host), book)
        self._crew = DistributedGenerator(self._environment.runner, book_lines, session.worker_lost)
        for index, ahead_s in self._crew.sync_clocks().items():
            if abs(ahead_s) > _WORTH_TELLING_S:
                told = f"the clock of worker {index} is {ahead_s:+.3f} s off the master's; its stamps are set right"
                test.note("ClockSkew", told)
        return self._crew

    # --- its end ------------------------------------------------------------------------------------------------

    def _conclude(self, code: ExitCode, verdict: str) -> None:
        """A test has ended. Its verdict is said at once where another may follow, else last of all."""
        why = ""
        if log.unhandled_greenlet_exception:
            say(f"error: {_RAISED}\n")
            if code is ExitCode.OK:
                code, why = ExitCode.BUG, _RAISED
        self._environment.process_exit_code = int(code)
        status_reporter.summarize_for_github(self._teller.document("report.md"))
        self._last_words = code, verdict, why
        if not self._environment.parsed_options.headless:
            self._say_last_words()

    def _say_last_words(self) -> None:
        if self._last_words is not None:
            # With --json Locust writes its statistics to stdout, for a program that reads nothing else there.
            status_reporter.conclude(*self._last_words, aside=self._environment.parsed_options.json)
            self._last_words = None

    def _join(self) -> None:
        if self._story is not None and self._story is not gevent.getcurrent():
            self._story.join()

    def _token(self, host: str) -> str:
        return token_for(host, self._host, self._read_token)

    def _read_token(self) -> str:
        return read_token(self._token_file, os.environ)
