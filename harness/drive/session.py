"""One test, from the press of Start to its report: open, dispatch, drain, clean up. Each test is a new folder."""

import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from enum import StrEnum

import gevent
import gevent.event

from harness.drive import processes
from harness.drive.background import LiveDiagnosis
from harness.drive.concurrency_limiter import ConcurrencyLimiter
from harness.drive.dispatch import STOPPED
from harness.drive.http_client import HttpClient
from harness.drive.ledger import Finished
from harness.drive.load_generator import LoadGenerator, lead_s
from harness.drive.run_setup import LoadTest, RunContext, get_ready, open_test
from harness.model.abort import Watch
from harness.model.errors import ExitCode, PipeswarmError
from harness.model.records import Outcome, Submission
from harness.model.schedules import Concurrency
from harness.plan.validate import Checked
from harness.store.folder import RunFolder
from harness.targets.cleaning import clean_up
from harness.targets.target import CleansUp, Cleanup

_TICK_S = 0.25
# A closed schedule is looked after more often: an ended run is a free slot. Slots that open by themselves are known in
# advance, and sent ahead so that they are on time.
_CLOSED_TICK_S = 0.02
_AHEAD_S = 0.1
_REFUSED_S = 1.0  # a slot rests so long after a rejection, so that a broken platform is not asked ever faster
# A test that is cut gives open requests so long to be answered.
_FAREWELL_S = 5.0
_INTERRUPTED = "Interrupted"


class Stage(StrEnum):
    """Where a test is."""

    PREPARING = "preparing"
    DISPATCHING = "dispatching"
    DRAINING = "draining"
    CLEANING = "cleaning up"
    REPORTING = "reporting"
    OVER = "over"


class Session:
    """One test. `run` does it all; `stop` and `cut` end it early; `crew_for` says who sends the arrivals."""

    def __init__(self, checked: Checked, means: RunContext, *, on_finished: Callable[[Finished], None]) -> None:
        self._checked = checked
        self._means = means
        self._on_finished = on_finished
        self._crew: LoadGenerator | None = None
        self._lookout: LiveDiagnosis | None = None
        self._stopped = gevent.event.Event()
        self._why_stopped = STOPPED
        self._watch = Watch(checked.settings.abort_on)
        self._cut = ""
        self._unwritten: OSError | None = None
        self._lost = 0  # arrivals of a closed schedule that went down with their worker
        self._started_at = self._last_due_at = 0
        self.test: LoadTest | None = None
        self.empty = True  # nothing has been made that would have to be sealed
        self.stage = Stage.PREPARING
        self.exit_code = ExitCode.OK
        self.verdict = ""

    @property
    def folder(self) -> RunFolder | None:
        """The run folder, once there is one."""
        return self.test.folder if self.test is not None else None

    # --- the whole story ----------------------------------------------------------------------------------------

    def run(self, crew_for: "Callable[[LoadTest, Session], LoadGenerator]") -> None:
        """Do the test. Never raises for what a user or a platform did: `exit_code` and `verdict` say it."""
        try:
            ready = get_ready(self._checked, self._means)
            self.empty = False
            test = self.test = open_test(ready)
            self._lookout = LiveDiagnosis(test.folder)
            self._crew = crew_for(test, self)
            self._dispatch(test, self._crew)
            self._drain(test)
        except PipeswarmError as error:
            self.exit_code = error.exit_code
            self.verdict = f"error: {error}"
        except OSError as error:
            if self.folder is None:
                raise
            self.exit_code = ExitCode.INVALID
            self.verdict = f"error: {_cannot_record(error, self.folder)}"
        finally:
            self._end()
        if self.folder is not None and self.exit_code in {ExitCode.OK, ExitCode.INTERRUPTED}:
            self._report(self.folder)
        if self._cut == _INTERRUPTED:
            self.exit_code = ExitCode.INTERRUPTED
        self.stage = Stage.OVER

    def stop(self, reason: str = "Stopped", why: str = STOPPED) -> None:
        """Send nothing more, but wait for the runs that are on their way."""
        if self.test is not None and self.stage is Stage.DISPATCHING and not self._stopped.is_set():
            self.test.note(reason, why if why != STOPPED else "dispatch was stopped before the schedule's end")
        self._why_stopped = why
        self._stopped.set()
        if self._crew is not None:
            self._crew.stop(why)

    def interrupt(self) -> None:
        """Somebody wants to leave: `cut`. A test that is complete stays so, and only its report is waited for."""
        self.cut(_INTERRUPTED)

    def cut(self, reason: str, why: str = STOPPED) -> None:
        """Stop and do not wait: what is still open is censored."""
        self._cut = self._cut or reason
        self.stop(reason, why)

    @contextmanager
    def recording(self) -> Iterator[None]:
        """What is booked in here and can't be written ends the test: nothing may be sent that leaves no trace."""
        try:
            yield
        except OSError as error:
            self._unwritten = self._unwritten or error
            self._cut = self._cut or "Unrecorded"
            self._stopped.set()
            if self._crew is not None:
                self._crew.stop(STOPPED)

    def worker_lost(self, index: int, client: str, arrivals: int) -> None:
        """Note that a worker died; its arrivals without a row make the run invalid."""
        self._lost += arrivals
        if self.test is not None:
            self.test.note("WorkerLost", f"worker {index} ({client}) is gone")

    # --- dispatch and drain -------------------------------------------------------------------------------------

    def _dispatch(self, test: LoadTest, crew: LoadGenerator) -> None:
        self.stage = Stage.DISPATCHING
        self._started_at = time.time_ns() + round(lead_s(test.offsets) * 1e9)
        test.note("Started", f"{test.plan.intended or 'as many as there is time for'} arrivals", at=self._started_at)
        crew.start(test.order(self._started_at))
        if self._stopped.is_set():  # before the first arrival: every one of them is missed
            crew.stop(self._why_stopped)
        if isinstance(test.schedule, Concurrency):
            self._keep_in_flight(test, crew, test.schedule)
        else:
            self._last_due_at = self._started_at + round(test.offsets[-1] * 1e9)
        while not crew.finished() and not self._cut:
            self._tick(test)
        with gevent.Timeout(_FAREWELL_S, exception=False):
            while not crew.finished():
                self._tick(test)
        if isinstance(test.schedule, Concurrency):
            self._settle_closed(test, test.schedule)
        test.note("DispatchEnded", "every arrival was answered or missed")

    def _keep_in_flight(self, test: LoadTest, crew: LoadGenerator, schedule: Concurrency) -> None:
        """Give the crew an arrival for each slot that gets free, until the schedule ends or somebody stops it."""
        slots, ended, refused = ConcurrencyLimiter(schedule, self._checked.settings.most_runs), 0, 0
        if schedule.length_s < float("inf"):
            self._last_due_at = self._started_at + round(schedule.length_s * 1e9)
        while not self._stopped.is_set() and not crew.finished():
            now_s = (time.time_ns() - self._started_at) / 1e9
            counts = test.ledger.counts
            slots.free(counts.ended - counts.rejected + self._lost - ended, now_s)
            slots.free(counts.rejected - refused, now_s + _REFUSED_S)
            ended, refused = counts.ended - counts.rejected + self._lost, counts.rejected
            found = slots.due(now_s + _AHEAD_S)
            over = slots.over(now_s)
            crew.send([(len(test.offsets) + k, due_s) for k, due_s in enumerate(found)], last=over)
            test.offsets.extend(found)
            test.ledger.intended = max(test.ledger.intended, len(test.offsets))
            if over:
                return
            self._tick(test, _CLOSED_TICK_S)

    def _settle_closed(self, test: LoadTest, schedule: Concurrency) -> None:
        """What was due is known now. Runs that were promised and never became due are missed."""
        now_at = time.time_ns()
        for seq in range(len(test.offsets), schedule.runs or 0):
            test.offsets.append((now_at - self._started_at) / 1e9)
            test.ledger.book(
                Submission(seq, "", "", now_at, None, None, Outcome.MISSED, None, 0, None, self._why_stopped)
            )
        test.settle()

    def _drain(self, test: LoadTest) -> None:
        """Wait until the platform says that every accepted run is over."""
        self.stage = Stage.DRAINING
        limit_s = self._checked.settings.limits.drain_s
        deadline = time.monotonic() + limit_s
        while test.ledger.counts.in_flight and time.monotonic() < deadline and not self._cut:
            self._tick(test)
        left = test.ledger.counts.in_flight
        if self._cut:
            test.note(self._cut, f"{left} runs were still going")
        elif left:
            test.note("DrainTimedOut", f"{left} runs were still going after {limit_s:g} s")
        else:
            test.note("Drained", "every accepted run is over")

    def _tick(self, test: LoadTest, seconds: float = _TICK_S) -> None:
        gevent.sleep(seconds)
        if self._unwritten is not None:
            raise self._unwritten
        self._book_ends(test)
        test.observer.watch()
        told = self._watch.broken(time.monotonic(), asdict(test.ledger.counts))
        if told and not self._cut:
            self.cut("Aborted", f"given up, {told}")

    def _book_ends(self, test: LoadTest) -> None:
        for event in test.ends.read():
            if finished := test.ledger.end(event):
                self._on_finished(finished)

    # --- after the last run -------------------------------------------------------------------------------------

    def _end(self) -> None:
        """Nobody looks any more: what is done to the platform from here on changes no figure."""
        if self._lookout is not None:
            self._lookout.end()
        if self.test is not None:
            self.test.observer.end()
            self._book_ends(self.test)
            self._clean_up(self.test)
            self.test.recorder.close()

    def _clean_up(self, test: LoadTest) -> None:
        """Do away with this test's runs as it was asked for."""
        settings = self._checked.settings
        if settings.cleanup is Cleanup.NONE or not isinstance(test.target, CleansUp):
            return
        self.stage = Stage.CLEANING
        rows = test.folder.records(Submission)
        runs = ((row.run, not test.ledger.open(row.run)) for row in rows if row.run is not None)
        carrier = HttpClient(test.plan.host, self._means.token, settings.limits, verify_tls=test.plan.verify_tls)
        try:
            done = clean_up(
                test.target, runs, settings.cleanup, carrier, rate=settings.cleanup_rate, sleep=gevent.sleep
            )
        finally:
            carrier.close()
        with suppress(OSError):  # a full disk has been told of
            test.note("CleanedUp", f"--cleanup {settings.cleanup}: {done}")

    def _report(self, folder: RunFolder) -> None:
        self.stage = Stage.REPORTING
        code, self.verdict = processes.report(folder.path)
        if self.exit_code is ExitCode.OK:
            with suppress(ValueError):
                self.exit_code = ExitCode(code)

    # --- how it stands ------------------------------------------------------------------------------------------

    def live(self) -> dict[str, object]:
        """What the progress line and the web UI show: the ledger's counts, the pace, and the time that is left."""
        test = self.test
        if test is None:
            return {"stage": str(self.stage)}
        counts, lags, now_at = test.ledger.counts, test.ledger.lags, time.time_ns()
        due = bisect_right(test.offsets, (now_at - self._started_at) / 1e9) if self._started_at else 0
        awaited = max(0, due - counts.recorded) if self.stage is Stage.DISPATCHING else 0
        over = counts.done + counts.failed
        per_s = over / max((now_at - self._started_at) / 1e9, 1.0)
        live: dict[str, object] = {"stage": str(self.stage), **asdict(counts)}
        live |= {"sent": counts.sent + awaited, "awaited": awaited, "in_flight": counts.in_flight}
        live |= {"lag_s": lags.take_worst(), "lag_p99_s": lags.quantile(0.99)}
        live["load"] = _in_words(test)
        if over and self.stage in {Stage.DISPATCHING, Stage.DRAINING}:  # afterwards the report says it better
            live["runs_per_min"] = per_s * 60
            open_s = (counts.intended - counts.rejected - counts.missed - over) / per_s
            live["eta_s"] = max(open_s, (self._last_due_at - now_at) / 1e9)
        return live


def _cannot_record(error: OSError, folder: RunFolder) -> str:
    told = f"{folder.path} can't be written: {error.strerror or error}"
    return f"{told}; the test was given up\n  → make room; pipeswarm report tells what was recorded until then"


def _in_words(test: LoadTest) -> str:
    if isinstance(test.schedule, Concurrency):
        most = test.schedule.most_in_flight
        return f"concurrency: at most {most} in flight (closed model: a slow platform is asked less)"
    return f"{test.schedule.name} (open model: users don't set the rate)"
