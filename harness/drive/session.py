"""One test, from the press of Start to the report: set up, dispatch, drain, seal. Each test is a new folder."""

import os
import sys
import time
from array import array
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, replace
from enum import StrEnum
from pathlib import Path

import gevent
import gevent.event

from harness.drive import processes
from harness.drive.carrier import Carrier
from harness.drive.closed import Slots
from harness.drive.crew import Crew
from harness.drive.dispatch import STOPPED
from harness.drive.ledger import Finished, Ledger
from harness.drive.order import Order
from harness.drive.preparing import Checked, guard, scenarios_for, versions
from harness.drive.watching import Observer
from harness.model.abort import Watch
from harness.model.concurrency import Concurrency
from harness.model.errors import ConfigError, ExitCode, PipeswarmError
from harness.model.plan import Plan
from harness.model.records import Event, Outcome, Submission
from harness.model.schedule import Schedule, to_mapping
from harness.store.baselines import keep_baseline
from harness.store.folder import PIPELINE, SCENARIOS, RunFolder, run_name, schedule_digest
from harness.targets.cleaning import Cleaning, Cleanup, clean_up
from harness.targets.target import Platform

# Between the last preparation and the first arrival: workers get their orders and open connections.
_LEAD_S = 1.0
_TICK_S = 0.25
# A closed schedule is looked after more often: an ended run is a free slot. Slots that open by themselves are known in
# advance, and sent ahead so that they are on time.
_CLOSED_TICK_S = 0.02
_AHEAD_S = 0.1
_REFUSED_S = 1.0  # a slot rests so long after a rejection, so that a broken platform is not asked ever faster
# A test that is cut gives open requests so long to be answered.
_FAREWELL_S = 5.0


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

    def __init__(
        self,
        checked: Checked,
        platform: Platform,
        *,
        token: str,
        simulator: processes.Simulator | None,
        workers: int,
        on_finished: Callable[[Finished], None],
    ) -> None:
        self._checked = checked
        self._platform = platform
        self._token = token
        self._simulator = simulator
        self._workers = workers
        self._on_finished = on_finished
        self._stopped = gevent.event.Event()
        self._why_stopped = STOPPED
        self._watch = Watch(checked.settings.abort_on)
        self._cut: str = ""
        self._observer: Observer | None = None
        self._offsets = array("d")
        self._lost = 0  # arrivals of a closed schedule that went down with their worker
        self.stage = Stage.PREPARING
        self.exit_code = ExitCode.OK
        self.verdict = ""
        self.folder: RunFolder | None = None
        self.ledger: Ledger | None = None
        self.crew: Crew | None = None
        self.last_due_at = 0
        self.started_at = 0

    # --- the whole story ----------------------------------------------------------------------------------------

    def run(self, crew_for: Callable[["Session"], Crew]) -> None:
        """Do the test. Never raises for what a user or a platform did: `exit_code` and `verdict` say it."""
        try:
            order = self._prepare()
            self.crew = crew_for(self)
            self._dispatch(order)
            self._drain()
        except PipeswarmError as error:
            self.exit_code = error.exit_code
            self.verdict = f"error: {error}"
        finally:
            self._end_observer()
        if self.folder is not None and self.exit_code in {ExitCode.OK, ExitCode.INTERRUPTED}:
            self._report(self.folder)
        self.stage = Stage.OVER

    def stop(self, reason: str = "Stopped", why: str = STOPPED) -> None:
        """Send nothing more, but wait for the runs that are on their way."""
        if self.stage is Stage.DISPATCHING and not self._stopped.is_set():
            self.note(reason, why if why != STOPPED else "dispatch was stopped before the schedule's end")
        self._why_stopped = why
        self._stopped.set()
        if self.crew is not None:
            self.crew.stop(why)

    def cut(self, reason: str, why: str = STOPPED) -> None:
        """Stop and do not wait: what is still open is censored."""
        self._cut = self._cut or reason
        self.stop(reason, why)

    # --- before the first arrival -------------------------------------------------------------------------------

    def _prepare(self) -> Order:
        """Everything that may fail, before the first arrival; the folder is made last."""
        checked, settings = self._checked, self._checked.settings
        host = self._simulator.url if self._simulator else settings.host
        plan = Plan(
            target=checked.target,
            host=host,
            schedule={},
            intended=0,
            seed=settings.seed,
            simulated=self._simulator is not None,
            target_options=dict(checked.prepared.options),
            limits=settings.limits,
            slos=settings.slos,
            versions=versions(),
            command=("locust", *sys.argv[1:]),
            started_at=time.time_ns(),
            workers=self._workers,
        )
        carrier = Carrier(host, self._token, settings.limits)
        try:
            target = self._platform.from_plan(plan, checked.prepared.package)
            if settings.cleanup is not Cleanup.NONE and not isinstance(target, Cleaning):
                raise ConfigError(f"--cleanup {settings.cleanup}: {plan.target} keeps no runs", "leave --cleanup out")
            found = target.set_up(carrier)
        finally:
            carrier.close()
        plan = replace(plan, target_options={**plan.target_options, **found.options})
        scenarios, kept = scenarios_for(checked, found.inputs)
        schedule = settings.schedule_for(len(scenarios))
        self._schedule = schedule
        if not isinstance(schedule, Concurrency):
            self._offsets = array("d", schedule.offsets(settings.seed))
            if not self._offsets:
                raise ConfigError("the schedule holds no arrival", "give a higher rate or a longer time")
        guard(settings, len(self._offsets))
        self._target = self._platform.from_plan(plan)
        intended = (schedule.runs or 0) if isinstance(schedule, Concurrency) else len(self._offsets)
        plan = replace(plan, schedule=to_mapping(schedule), intended=intended)
        if checked.baseline is not None:
            same = {} if isinstance(schedule, Concurrency) else {"schedule": schedule_digest(self._offsets)}
            checked.baseline[0].demand_same_load(replace(plan, digests=same))
        self.folder = folder = self._make_folder(plan, schedule)
        if checked.baseline is not None:
            keep_baseline(folder, checked.baseline[1])
        digests = {"scenarios": folder.keep(SCENARIOS, kept)}
        if checked.prepared.package is not None:
            digests["pipeline"] = folder.keep(PIPELINE, checked.prepared.package)
        self._plan = replace(plan, digests=digests)
        self._write_plan()
        self._recorder = folder.recorder()
        self.ledger = Ledger(self._recorder, intended)
        self._ends = folder.tail(Event)
        self._observer = self._start_observer(folder)
        return Order(folder.path.name, self._plan, scenarios, self._offsets, 0)

    def _make_folder(self, plan: Plan, schedule: Schedule | Concurrency) -> RunFolder:
        settings = self._checked.settings
        size = schedule.most_in_flight if isinstance(schedule, Concurrency) else len(self._offsets)
        name = settings.text("run-name") or run_name(plan.target, schedule.name, size, plan.started_at)
        return RunFolder.create(Path(settings.text("runs-dir") or "runs"), name)

    def _write_plan(self) -> None:
        """Manifest and schedule; a closed schedule's due times are known, and written again, when dispatch is over."""
        assert self.folder is not None
        _, digest = self.folder.write_schedule(self._offsets)
        self._plan = replace(self._plan, digests={**self._plan.digests, "schedule": digest})
        self.folder.write_plan(self._plan)

    def _start_observer(self, folder: RunFolder) -> Observer:
        environment = {"PIPESWARM_TOKEN": self._token} if self._token else {}
        if own := processes.folder_of(self._platform):
            environment["PYTHONPATH"] = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), own)))
        if self._simulator:
            environment["KUBECONFIG"] = self._simulator.kubeconfig
        options: list[str] = []
        for name in ("kube-context", "prometheus"):
            if given := self._checked.settings.text(name):
                options += [f"--{name}", given]
        observer = Observer(folder, self._recorder, options, environment)
        observer.wait_until_it_looks()
        return observer

    # --- dispatch and drain -------------------------------------------------------------------------------------

    def _dispatch(self, order: Order) -> None:
        assert self.crew is not None
        self.stage = Stage.DISPATCHING
        self.started_at = time.time_ns() + round(_LEAD_S * 1e9)
        self.note("Started", f"{order.plan.intended or 'as many as there is time for'} arrivals", at=self.started_at)
        self.crew.start(replace(order, t0_at=self.started_at))
        if self._stopped.is_set():  # before the first arrival: every one of them is missed
            self.crew.stop(self._why_stopped)
        if isinstance(self._schedule, Concurrency):
            self._keep_in_flight(self.crew, self._schedule)
        else:
            self.last_due_at = self.started_at + round(self._offsets[-1] * 1e9)
        while not self.crew.finished() and not self._cut:
            self._tick()
        with gevent.Timeout(_FAREWELL_S, exception=False):
            while not self.crew.finished():
                self._tick()
        if isinstance(self._schedule, Concurrency):
            self._settle_closed(self._schedule)
        self.note("DispatchEnded", "every arrival was answered or missed")

    def _keep_in_flight(self, crew: Crew, schedule: Concurrency) -> None:
        """Give the crew an arrival for each slot that gets free, until the schedule ends or somebody stops it."""
        assert self.ledger is not None
        slots, ended, refused = Slots(schedule, self._checked.settings.most_runs), 0, 0
        if schedule.length_s < float("inf"):
            self.last_due_at = self.started_at + round(schedule.length_s * 1e9)
        while not self._stopped.is_set() and not crew.finished():
            now_s = (time.time_ns() - self.started_at) / 1e9
            counts = self.ledger.counts
            slots.free(counts.ended - counts.rejected + self._lost - ended, now_s)
            slots.free(counts.rejected - refused, now_s + _REFUSED_S)
            ended, refused = counts.ended - counts.rejected + self._lost, counts.rejected
            found = slots.due(now_s + _AHEAD_S)
            over = slots.over(now_s)
            crew.send([(len(self._offsets) + k, due_s) for k, due_s in enumerate(found)], last=over)
            self._offsets.extend(found)
            self.ledger.intended = max(self.ledger.intended, len(self._offsets))
            if over:
                return
            self._tick(_CLOSED_TICK_S)

    def _settle_closed(self, schedule: Concurrency) -> None:
        """What was due is known now. Runs that were promised and never became due are missed."""
        assert self.ledger is not None
        now_at = time.time_ns()
        for seq in range(len(self._offsets), schedule.runs or 0):
            self._offsets.append((now_at - self.started_at) / 1e9)
            self.ledger.book(
                Submission(seq, "", "", now_at, None, None, Outcome.MISSED, None, 0, None, self._why_stopped)
            )
        self.ledger.intended = len(self._offsets)
        self._plan = replace(self._plan, intended=len(self._offsets))
        self._write_plan()

    def _drain(self) -> None:
        """Wait until the platform says that every accepted run is over."""
        assert self.ledger is not None
        self.stage = Stage.DRAINING
        limit_s = self._checked.settings.limits.drain_s
        deadline = time.monotonic() + limit_s
        while self.ledger.counts.in_flight and time.monotonic() < deadline and not self._cut:
            self._tick()
        left = self.ledger.counts.in_flight
        if self._cut:
            self.note(self._cut, f"{left} runs were still going")
            if self._cut == "Interrupted":
                self.exit_code = ExitCode.INTERRUPTED
        elif left:
            self.note("DrainTimedOut", f"{left} runs were still going after {limit_s:g} s")
        else:
            self.note("Drained", "every accepted run is over")

    def _tick(self, seconds: float = _TICK_S) -> None:
        gevent.sleep(seconds)
        self._book_ends()
        if self._observer is not None:
            self._observer.watch()
        assert self.ledger is not None
        told = self._watch.broken(time.monotonic(), asdict(self.ledger.counts))
        if told and not self._cut:
            self.cut("Aborted", f"given up, {told}")

    def _book_ends(self) -> None:
        assert self.ledger is not None
        for event in self._ends.read():
            finished = self.ledger.end(event)
            if finished:
                self._on_finished(finished)

    def note(self, reason: str, message: str, at: int | None = None) -> None:
        """An event of the test itself, in the run folder."""
        assert self.folder is not None
        self._recorder.write(Event(at or time.time_ns(), "Test", self.folder.path.name, reason, message))

    def worker_lost(self, index: int, client: str, arrivals: int) -> None:
        """Note that a worker died; its arrivals without a row make the run invalid."""
        self._lost += arrivals
        self.note("WorkerLost", f"worker {index} ({client}) is gone")

    def _end_observer(self) -> None:
        if self._observer is not None:
            self._observer.end()
        if self.ledger is not None:
            self._book_ends()
            self._clean_up(self.ledger)
            self._recorder.close()

    def _clean_up(self, ledger: Ledger) -> None:
        """Do away with this test's runs as it was asked for; nobody observes any more, so it changes no figure."""
        settings = self._checked.settings
        if settings.cleanup is Cleanup.NONE or self.folder is None or not isinstance(self._target, Cleaning):
            return
        self.stage = Stage.CLEANING
        rows = self.folder.records(Submission)
        runs = ((row.run, not ledger.open(row.run)) for row in rows if row.run is not None)
        carrier = Carrier(self._plan.host, self._token, settings.limits)
        try:
            done = clean_up(
                self._target, runs, settings.cleanup, carrier, rate=settings.cleanup_rate, sleep=gevent.sleep
            )
        finally:
            carrier.close()
        self.note("CleanedUp", f"--cleanup {settings.cleanup}: {done}")

    # --- after the last run -------------------------------------------------------------------------------------

    def _report(self, folder: RunFolder) -> None:
        self.stage = Stage.REPORTING
        code, self.verdict = processes.report(folder.path)
        if self.exit_code is ExitCode.OK:
            with suppress(ValueError):
                self.exit_code = ExitCode(code)

    def live(self) -> dict[str, object]:
        """What the progress line and the web UI show: the ledger's counts, the pace, and the time that is left."""
        if self.ledger is None:
            return {"stage": str(self.stage)}
        counts = self.ledger.counts
        lag_s, self.ledger.worst_lag_s = self.ledger.worst_lag_s, 0.0
        now_at = time.time_ns()
        over = counts.done + counts.failed
        per_s = over / max((now_at - self.started_at) / 1e9, 1.0)
        live: dict[str, object] = {"stage": str(self.stage), **asdict(counts), "sent": counts.sent}
        live |= {"in_flight": counts.in_flight, "runs_per_min": per_s * 60, "lag_s": lag_s}
        live["load"] = _in_words(self._schedule)
        if over and self.stage in {Stage.DISPATCHING, Stage.DRAINING}:
            open_s = (counts.intended - counts.rejected - counts.missed - over) / per_s
            live["eta_s"] = max(open_s, (self.last_due_at - now_at) / 1e9)
        return live


def _in_words(schedule: Schedule | Concurrency) -> str:
    if isinstance(schedule, Concurrency):
        return f"concurrency: at most {schedule.most_in_flight} in flight (closed model: a slow platform is asked less)"
    return f"{schedule.name} (open model: users don't set the rate)"
