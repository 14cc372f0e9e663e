"""One test, from the press of Start to the report: check, set up, dispatch, drain, seal. Each test is a new folder."""

import sys
import tempfile
import time
from array import array
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import gevent
import gevent.event

from harness.drive import processes
from harness.drive.carrier import Carrier
from harness.drive.crew import Crew, Order
from harness.drive.ledger import Finished, Ledger
from harness.drive.options import Settings
from harness.model.errors import ConfigError, ExitCode, PipeswarmError
from harness.model.plan import Plan
from harness.model.records import Event
from harness.model.scenario import Scenario
from harness.model.schedule import Schedule, to_mapping
from harness.model.slo import parse_slo
from harness.store.folder import PIPELINE, SCENARIOS, RunFolder, run_name
from harness.targets.scenarios import Input, ParamMode, read_scenarios
from harness.targets.target import Platform, Prepared

# Between the last preparation and the first arrival: workers get their orders and open connections.
_LEAD_S = 1.0
_TICK_S = 0.25
# A test that is cut gives open requests so long to be answered.
_FAREWELL_S = 5.0
_OBSERVER_START_S = 20.0
_MOST_GENERATED = 100_000
_MOST_RESTARTS = 3


class Stage(StrEnum):
    """Where a test is."""

    PREPARING = "preparing"
    DISPATCHING = "dispatching"
    DRAINING = "draining"
    REPORTING = "reporting"
    OVER = "over"


@dataclass(frozen=True, slots=True)
class Checked:
    """A test's configuration, checked as far as it can be without the platform."""

    settings: Settings
    target: str
    prepared: Prepared
    scenarios: tuple[Scenario, ...] | None  # none: the inputs are not known yet, or they are to be generated


def check(settings: Settings, target: str, platform: Platform) -> Checked:
    """Read and check everything that lies on this machine.

    Raises:
        ConfigError: it can't work; nothing has been started or written.
    """
    for objective in settings.slos:
        parse_slo(objective)
    prepared = platform.prepare(settings.texts, simulated=not settings.host)
    given = settings.text("scenarios")
    scenarios = None
    if given and prepared.inputs is not None:
        scenarios = tuple(_read(settings, prepared.inputs))
    elif given and not Path(given).is_file():
        raise ConfigError(f"there is no scenario file {given}", f"generate-scenarios --n 100 -o {given} makes one")
    ParamMode.parse(settings.text("param-mode"))
    return Checked(settings, target, prepared, scenarios)


def _read(settings: Settings, inputs: tuple[Input, ...]) -> list[Scenario]:
    return read_scenarios(Path(settings.text("scenarios")), inputs, ParamMode.parse(settings.text("param-mode")))


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
        self._cut: str = ""
        self._observer: Any = None
        self._restarts = 0
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

    def stop(self, reason: str = "Stopped") -> None:
        """Send nothing more, but wait for the runs that are on their way."""
        if self.stage is Stage.DISPATCHING and not self._stopped.is_set():
            self._note(reason, "dispatch was stopped before the schedule's end")
        self._stopped.set()
        if self.crew is not None:
            self.crew.stop()

    def cut(self, reason: str) -> None:
        """Stop and do not wait: what is still open is censored."""
        self._cut = self._cut or reason
        self.stop(reason)

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
        carrier = Carrier(host, self._token, settings.limits, connections=1)
        try:
            found = self._platform.from_plan(plan, checked.prepared.package).set_up(carrier)
        finally:
            carrier.close()
        plan = replace(plan, target_options={**plan.target_options, **found.options})
        scenarios, kept = self._scenarios(found.inputs)
        schedule = settings.schedule_for(len(scenarios))
        offsets = array("d", schedule.offsets(settings.seed))
        if not offsets:
            raise ConfigError("the schedule holds no arrival", "give a higher rate or a longer time")
        self.folder = folder = self._make_folder(plan, schedule, len(offsets))
        intended, schedule_digest = folder.write_schedule(offsets)
        digests = {"schedule": schedule_digest, "scenarios": folder.keep(SCENARIOS, kept)}
        if checked.prepared.package is not None:
            digests["pipeline"] = folder.keep(PIPELINE, checked.prepared.package)
        plan = replace(plan, schedule=to_mapping(schedule), intended=intended, digests=digests)
        folder.write_plan(plan)
        self._recorder = folder.recorder()
        self.ledger = Ledger(self._recorder, intended)
        self._ends = folder.tail(Event)
        self._start_observer(folder)
        self.started_at = time.time_ns() + round(_LEAD_S * 1e9)
        self.last_due_at = self.started_at + round(offsets[-1] * 1e9)
        return Order(folder.path.name, plan, scenarios, offsets, self.started_at)

    def _scenarios(self, inputs: tuple[Input, ...]) -> tuple[list[Scenario], bytes]:
        """The scenarios and the bytes of their CSV: given, or generated from the pipeline's inputs."""
        settings = self._checked.settings
        given = settings.text("scenarios")
        if given:
            return list(self._checked.scenarios or _read(settings, inputs)), Path(given).read_bytes()
        package = self._checked.prepared.package
        if package is None:
            raise ConfigError("there are no scenarios", "give --scenarios FILE with a column for each parameter")
        schedule = settings.schedule_for(1)
        count = min(sum(1 for _ in schedule.offsets(settings.seed)), _MOST_GENERATED)
        with tempfile.TemporaryDirectory(prefix="pipeswarm-") as place:
            pipeline, out = Path(place) / PIPELINE, Path(place) / SCENARIOS
            pipeline.write_bytes(package)
            option = self._checked.prepared.inferred_with
            processes.generate_scenarios(option, pipeline, max(count, 1), settings.seed, out)
            return read_scenarios(out, inputs, ParamMode()), out.read_bytes()

    def _make_folder(self, plan: Plan, schedule: Schedule, count: int) -> RunFolder:
        settings = self._checked.settings
        name = settings.text("run-name") or run_name(plan.target, schedule.name, count, plan.started_at)
        return RunFolder.create(Path(settings.text("runs-dir") or "runs"), name)

    # --- dispatch and drain -------------------------------------------------------------------------------------

    def _dispatch(self, order: Order) -> None:
        assert self.crew is not None
        self.stage = Stage.DISPATCHING
        self._note("Started", f"{order.plan.intended} arrivals", at=order.t0_at)
        self.crew.start(order)
        if self._stopped.is_set():  # before the first arrival: every one of them is missed
            self.crew.stop()
        while not self.crew.finished() and not self._cut:
            self._tick()
        with gevent.Timeout(_FAREWELL_S, exception=False):
            while not self.crew.finished():
                self._tick()
        self._note("DispatchEnded", "every arrival was answered or missed")

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
            self._note(self._cut, f"{left} runs were still going")
            if self._cut == "Interrupted":
                self.exit_code = ExitCode.INTERRUPTED
        elif left:
            self._note("DrainTimedOut", f"{left} runs were still going after {limit_s:g} s")
        else:
            self._note("Drained", "every accepted run is over")

    def _tick(self) -> None:
        gevent.sleep(_TICK_S)
        self._book_ends()
        self._watch_observer()

    def _book_ends(self) -> None:
        assert self.ledger is not None
        for event in self._ends.read():
            finished = self.ledger.end(event)
            if finished:
                self._on_finished(finished)

    def _note(self, reason: str, message: str, at: int | None = None) -> None:
        """An event of the test itself, in the run folder."""
        assert self.folder is not None
        self._recorder.write(Event(at or time.time_ns(), "Test", self.folder.path.name, reason, message))

    def worker_lost(self, index: int, client: str) -> None:
        """Note that a worker died; its arrivals without a row make the run invalid."""
        self._note("WorkerLost", f"worker {index} ({client}) is gone")

    # --- the observer -------------------------------------------------------------------------------------------

    def _start_observer(self, folder: RunFolder) -> None:
        self._observer = processes.start_observer(folder.path, self._observer_options(), self._observer_environment())
        waited = time.monotonic() + _OBSERVER_START_S
        while not folder.read_live("observer") and self._observer.poll() is None and time.monotonic() < waited:
            gevent.sleep(0.05)

    def _observer_options(self) -> list[str]:
        settings = self._checked.settings
        options = []
        for name in ("kube-context", "prometheus"):
            if settings.text(name):
                options += [f"--{name}", settings.text(name)]
        return options

    def _observer_environment(self) -> Mapping[str, str]:
        environment = {"PIPESWARM_TOKEN": self._token} if self._token else {}
        if self._simulator:
            environment["KUBECONFIG"] = self._simulator.kubeconfig
        return environment

    def _watch_observer(self) -> None:
        """An observer that died is started again; the gap is recorded, and the load is not disturbed."""
        if self._observer.poll() is not None and self._restarts < _MOST_RESTARTS:
            assert self.folder is not None
            self._restarts += 1
            ended = f"the observer ended with {self._observer.returncode} and was started again; see observer.log"
            self._recorder.write(Event(time.time_ns(), "Observer", "observer", "Gap", ended, type="Warning"))
            self._observer = processes.start_observer(
                self.folder.path, self._observer_options(), self._observer_environment()
            )

    def _end_observer(self) -> None:
        if self._observer is not None:
            processes.end(self._observer)
        if self.ledger is not None:
            self._book_ends()
            self._recorder.close()

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
        if over and self.stage in {Stage.DISPATCHING, Stage.DRAINING}:
            open_s = (counts.intended - counts.rejected - counts.missed - over) / per_s
            live["eta_s"] = max(open_s, (self.last_due_at - now_at) / 1e9)
        return live


def versions() -> dict[str, str]:
    """The versions that a result depends on."""
    found = {"python": sys.version.split()[0]}
    for name in ("pipeswarm", "locust", "gevent", "geventhttpclient", "kubernetes"):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found
