"""Runs one test: does what its `Session` asks for and tells it what happened. Each test gets a new run folder."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import gevent
import gevent.queue

from harness.drive import processes
from harness.drive import session_messages as messages
from harness.drive.background import LiveDiagnosis
from harness.drive.dispatch.loop import Clock, Record
from harness.drive.http.clients import client_of
from harness.drive.locust_statistics import Statistics
from harness.drive.session.course import Session
from harness.drive.session.live_load import live_load
from harness.drive.session.setup import LoadTest, Ready, open_test
from harness.drive.workers.load_generator import LedgerClosedError, LoadGenerator, UnwritableError, lead_s
from harness.model.errors import ExitCode, PipeswarmError
from harness.model.live.observer import LiveObserver
from harness.model.live.state import LiveLoad, Stage
from harness.model.records import Outcome, Submission
from harness.model.schedules import Concurrency
from harness.store.folder import RunFolder
from harness.store.spools import Origin, Spool, spool_path
from harness.targets.cleaning import clean_up
from harness.targets.target import CleansUp, Cleanup


class SessionRunner:
    """One test. `run` returns when it is over; until then any greenlet may `tell` what happens.

    Args:
        prepare: checks the configuration and sets up the platform.
        generator_for: returns the load generator of a test; its rows go to `book` or `book_lines`.
        statistics: see each arrival and each end.

    Attributes:
        test: the test, once its run folder exists.
        exit_code: of the whole test, when it is over, as is `verdict`.
    """

    def __init__(
        self,
        prepare: Callable[[], Ready],
        generator_for: "Callable[[LoadTest, SessionRunner], LoadGenerator]",
        statistics: Statistics,
    ) -> None:
        self._get_ready = prepare
        self._generator_for = generator_for
        self._statistics = statistics
        self._session = Session()
        self._events: gevent.queue.Queue[messages.Event] = gevent.queue.Queue()
        self._preparation = gevent.Greenlet(self._prepare)
        self._ready: Ready | None = None
        self._generator: LoadGenerator | None = None
        self._diagnosis: LiveDiagnosis | None = None
        self._clock = Clock()
        self._t0_at = 0
        self._defect: Exception | None = None
        self.test: LoadTest | None = None
        self.exit_code = ExitCode.BUG
        self.verdict = ""
        self._left = ""

    @property
    def stage(self) -> Stage:
        """The stage of the test."""
        return self._session.stage

    @property
    def folder(self) -> RunFolder | None:
        """The run folder, once it exists."""
        return self.test.folder if self.test is not None else None

    def run(self) -> None:
        """Run the test to its end; errors of users and platforms end up in `exit_code` and `verdict`.

        Raises:
            Exception: an internal error, after everything was closed.
        """
        self._preparation.start()
        while self.stage is not Stage.OVER:
            try:
                event = self._events.get(timeout=self._session.tick_s)
            except gevent.queue.Empty:
                event = None
            try:
                if event is None:
                    self._look()
                else:
                    for command in self._session.on(event):
                        self._do(command)
            except Exception as error:  # noqa: BLE001  # raised when everything is closed, unless a user caused it
                self._fail(error)
        if self.test is not None:
            self.test.claim.release()
        if self._defect is not None:
            raise self._defect

    def tell(self, event: messages.Event) -> None:
        """Something happened; events are handled one after the other, in the greenlet of `run`."""
        self._events.put(event)

    def live(self) -> LiveLoad:
        """The present state of the load."""
        if self.test is None:
            return LiveLoad(self.stage)
        return live_load(
            self.stage, self.test, self._t0_at, time.time_ns(), self._observed(self.test).ends_age_s(time.time_ns())
        )

    # --- booking ------------------------------------------------------------------------------------------------

    def book(self, record: Record) -> None:
        """Book a record of the load generator."""
        assert self.test is not None
        if isinstance(record, Submission):
            self._statistics.row(record)
        if finished := self.test.ledger.book(record):
            self._statistics.finished(finished)
        if self.test.ledger.failure is not None:
            self.tell(messages.WriteFailed(self._unwritable(self.test.ledger.failure)))

    def book_lines(self, lines: bytes) -> int:
        """See `Books.book_lines`."""
        if self.test is None or self.stage not in {Stage.DISPATCHING, Stage.DRAINING}:
            raise LedgerClosedError
        ledger = self.test.ledger
        before = ledger.counts.recorded
        try:
            for finished in ledger.book_lines(lines):
                self._statistics.finished(finished)
        except OSError as error:
            self.tell(messages.WriteFailed(self._unwritable(error)))
            raise UnwritableError from error
        return ledger.counts.recorded - before

    def worker_lost(self, index: int, client: str, arrivals: int) -> None:
        """See `Books.worker_lost`."""
        self.tell(messages.WorkerLost(index, client, arrivals))

    def rows_late(self, index: int, client: str, arrivals: int) -> None:
        """See `Books.rows_late`."""
        self.tell(messages.LateRows(index, client, arrivals))

    @contextmanager
    def _recording(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self.tell(messages.WriteFailed(self._unwritable(error)))

    # --- events -------------------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        try:
            self._ready = ready = self._get_ready()
        except Exception as error:  # noqa: BLE001  # raised in `run`, unless a user caused it
            self._fail(error)
            return
        settings, test = ready.checked.settings, ready.test
        terms = messages.Terms(
            intended=test.plan.intended,
            drain_s=settings.limits.drain_s,
            clean_up=settings.cleanup is not Cleanup.NONE,
            abort_on=settings.abort_on,
            concurrency=test.schedule if isinstance(test.schedule, Concurrency) else None,
            max_runs=settings.most_runs,
            answer_s=settings.limits.answer_timeout_s,
        )
        self.tell(messages.Prepared(terms))

    def _look(self) -> None:
        assert self.test is not None
        assert self._generator is not None
        finished = self.stage is Stage.DISPATCHING and self._generator.finished()
        self._book_ends(self.test)
        self.test.observer.restart_if_dead()
        if stepped_s := self._clock.stepped_s():
            with self._recording():
                self.test.note("ClockStepped", f"the load generator's clock stepped by {stepped_s:+.1f} s")
        elapsed_s = (self._clock.now() - self._t0_at) / 1e9
        age_s, blocked = None, 0
        if self._ready and self._ready.checked.settings.abort_on:
            observed = self._observed(self.test)
            age_s, blocked = observed.ends_age_s(time.time_ns()), observed.blocked or 0
        self.tell(messages.Tick(time.monotonic(), elapsed_s, self.test.ledger.counts, finished, age_s, blocked))

    @staticmethod
    def _observed(test: LoadTest) -> LiveObserver:
        return LiveObserver.from_json(test.folder.read_live("observer"))

    def _book_ends(self, test: LoadTest) -> None:
        for event in test.ends.read():
            if finished := test.ledger.end(event):
                self._statistics.finished(finished)

    def _fail(self, error: Exception) -> None:
        closing = self.stage in {Stage.CLEANING, Stage.REPORTING}
        if isinstance(error, PipeswarmError):
            self.tell(messages.Failed(error.exit_code, f"error: {error}"))
        elif isinstance(error, OSError) and self.test is not None and not closing:
            self.tell(messages.WriteFailed(self._unwritable(error)))
        else:
            self._defect = error
            self.tell(messages.Failed(ExitCode.BUG, ""))

    def _unwritable(self, error: OSError) -> str:
        path = self.folder.path if self.folder is not None else "the run folder"
        return (
            f"error: {path} can't be written: {error.strerror or error}; the test was aborted\n"
            "  → free some space; pipeswarm report shows what was recorded until then"
        )

    # --- commands -----------------------------------------------------------------------------------------------

    def _do(self, command: messages.Command) -> None:
        match command:
            case messages.Open():
                self._open()
            case messages.WriteReport():
                assert self.folder is not None
                self.tell(messages.Reported(*processes.report(self.folder.path, *self._report_options())))
            case messages.Close():
                self._close(command.clean_up)
            case messages.Finish():
                self._preparation.kill()
                self.exit_code, self.verdict = command.exit_code, f"{command.verdict}{self._left}"
            case _:
                assert self.test is not None
                assert self._generator is not None
                self._direct(command, self.test, self._generator)

    def _report_options(self) -> tuple[str, ...]:
        assert self._ready is not None
        settings = self._ready.checked.settings
        given = {"--otel": settings.traced, "--no-what-if": settings.no_what_if}
        return tuple(option for option, wanted in given.items() if wanted)

    def _direct(self, command: messages.Command, test: LoadTest, generator: LoadGenerator) -> None:
        match command:
            case messages.Note():
                with self._recording():
                    test.note(command.reason, command.message, command.at)
            case messages.StartGenerator():
                generator.start(test.assignment(command.t0_at))
            case messages.StopGenerator():
                generator.stop(command.why, at_once=command.at_once)
            case messages.SendMore():
                generator.send(command.dues, last=command.last)
                test.offsets.extend(due_s for _, due_s in command.dues)
                test.ledger.intended = max(test.ledger.intended, len(test.offsets))
            case messages.SettleClosed():
                with self._recording():
                    self._settle(test, command.missed, command.why)

    def _open(self) -> None:
        assert self._ready is not None
        self.test = open_test(self._ready)
        self._diagnosis = LiveDiagnosis(self.test.folder)
        self._generator = self._generator_for(self.test, self)
        self._t0_at = self._clock.now() + round(lead_s(self.test.offsets) * 1e9)
        self.tell(messages.Opened(self._t0_at))

    def _settle(self, test: LoadTest, missed: int, why: str) -> None:
        now_at = time.time_ns()
        for _ in range(missed):
            row = Submission(len(test.offsets), "", "", now_at, None, None, Outcome.MISSED, None, 0, None, why)
            test.offsets.append((now_at - self._t0_at) / 1e9)
            test.ledger.book(row)
        test.settle()

    def _close(self, wanted: bool) -> None:
        """End the observation first: then the clean-up changes no figure."""
        if self._diagnosis is not None:
            self._diagnosis.end()
        if self.test is not None:
            self.test.observer.end()
            self._book_ends(self.test)
            if wanted and isinstance(self.test.target, CleansUp):
                self._left = self._clean_up(self.test, self.test.target)
            self._left += self._keep_rows(self.test)
            self.test.recorder.close()
        self.tell(messages.Closed())

    def _keep_rows(self, test: LoadTest) -> str:
        """Write the rows that the run folder did not take, there or to a spool; returns the last words on them."""
        rest = test.ledger.write_held()
        if not rest:
            return ""
        worker = test.plan.workers  # the workers' own spools have smaller numbers
        path = spool_path(test.plan.id, worker)
        spool = Spool(path, Origin(test.plan.id, test.folder.path.name, worker))
        try:
            spool.append(b"".join(rest))
        except OSError as error:
            return f"\n{len(rest):,} records were lost: {path} can't be written either: {error.strerror}"
        finally:
            spool.close()
        return f"\n{len(rest):,} records are in {path}\n  → to add them: pipeswarm recover {test.folder.path}"

    def _clean_up(self, test: LoadTest, target: CleansUp) -> str:
        """Clean up the test's runs; returns the last words on those that could not be."""
        assert self._ready is not None
        settings = self._ready.checked.settings
        rows = test.folder.records(Submission)
        runs = ((row.run, not test.ledger.open(row.run)) for row in rows if row.run is not None)
        client = client_of(test.plan, self._ready.context.credentials)
        try:
            cleaned = clean_up(target, runs, settings.cleanup, client, rate=settings.cleanup_rate, sleep=gevent.sleep)
        finally:
            client.close()
        with suppress(OSError):  # a full disk was reported already
            test.note("CleanedUp", f"--cleanup {settings.cleanup}: {cleaned}")
        if not cleaned.failed:
            return ""
        again = f"pipeswarm cleanup {test.folder.path} --how {settings.cleanup}"
        return f"\nwarning: --cleanup {settings.cleanup}: {cleaned}\n  → when that is solved: {again}"
