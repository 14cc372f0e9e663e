"""Everything before the first arrival: set up the platform, make the run folder, start the observer."""

import hashlib
import shutil
import sys
import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from harness.drive import processes
from harness.drive.background import Observer
from harness.drive.http_client import HttpClient
from harness.drive.ledger import Ledger
from harness.model.concurrency import Concurrency
from harness.model.errors import ConfigError
from harness.model.plan import Plan
from harness.model.records import Event
from harness.model.redaction import Redaction, column_of, hide_columns, values_of
from harness.model.scenario import Scenario
from harness.model.schedule import Schedule, to_mapping
from harness.plan.assignment import Assignment
from harness.plan.environment import python_path
from harness.plan.options import Settings
from harness.plan.validate import Checked, guard, scenarios_for, versions
from harness.store.baselines import keep_baseline
from harness.store.folder import PIPELINE, SCENARIOS, Recorder, RunFolder, Tail, run_name, schedule_digest
from harness.targets.bearer import VARIABLE
from harness.targets.cleaning import Cleaning, Cleanup
from harness.targets.scenarios import Input, as_cell
from harness.targets.target import Platform, Redactable, Target


@dataclass(frozen=True, slots=True)
class RunContext:
    """What a test needs beside its configuration."""

    platform: Platform
    token: str  # "" if it was given for another host
    with_token: bool  # whether workers may send their own
    simulator: processes.Simulator | None
    workers: int


@dataclass(frozen=True, slots=True)
class Ready:
    """What is known when nothing more than the run folder is missing; until then nothing has been made."""

    checked: Checked
    means: RunContext
    plan: Plan
    schedule: Schedule | Concurrency
    offsets: "array[float]"
    scenarios: list[Scenario]
    kept: bytes
    hidden: tuple[str, ...]  # values that must not be recorded


@dataclass(slots=True)
class LoadTest:
    """A test that can start. The due times of a closed schedule are complete only when its dispatch has ended."""

    folder: RunFolder
    plan: Plan
    schedule: Schedule | Concurrency
    offsets: "array[float]"
    scenarios: list[Scenario]
    hidden: tuple[str, ...]
    with_token: bool
    target: Target
    recorder: Recorder
    ledger: Ledger
    ends: Tail[Event]
    observer: Observer

    def assignment(self, t0_at: int) -> Assignment:
        """All arrivals, for a load generator that starts at `t0_at`."""
        return Assignment(
            self.folder.path.name, self.plan, self.scenarios, self.offsets, t0_at,
            hidden=self.hidden, with_token=self.with_token,
        )  # fmt: skip

    def note(self, reason: str, message: str, at: int | None = None) -> None:
        """Record an event of the test itself, at `at` (UTC ns) or now."""
        self.recorder.write(Event(at or time.time_ns(), "Test", self.folder.path.name, reason, message))

    def settle(self) -> None:
        """Write the final due times of a closed schedule."""
        self.ledger.intended = len(self.offsets)
        _write_plan(self.folder, replace(self.folder.read_plan(), intended=len(self.offsets)), self.offsets)


def get_ready(checked: Checked, means: RunContext) -> Ready:
    """Set up the platform and check everything that needs it.

    Raises:
        ConfigError: the configuration can't work.
        TargetUnreachableError: the platform does not respond as expected.
    """
    settings = checked.settings
    plan, inputs = _set_up(checked, means)
    scenarios, kept = scenarios_for(checked, inputs)
    schedule = settings.schedule_for(len(scenarios))
    offsets = _due_times(schedule, settings.seed)
    guard(settings, len(offsets))
    intended = (schedule.runs or 0) if isinstance(schedule, Concurrency) else len(offsets)
    plan = replace(plan, schedule=to_mapping(schedule), intended=intended)
    _check_redaction(settings.redact, scenarios, inputs)
    _check_baseline(checked, plan, offsets)
    return Ready(checked, means, plan, schedule, offsets, scenarios, kept, _hidden(settings.redact, scenarios, inputs))


def open_test(ready: Ready) -> LoadTest:
    """Make the run folder and start the observer.

    Raises:
        ConfigError: the folder can't be made or written, or the observer rejects its options.
    """
    settings, offsets = ready.checked.settings, ready.offsets
    folder = _make_folder(settings, ready)
    recorder = folder.recorder()
    try:
        plan = _keep_inputs(folder, ready)
        observer = _start_observer(folder, recorder, ready)
    except (ConfigError, OSError) as error:
        recorder.close()
        shutil.rmtree(folder.path)
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(
            f"{folder.path} can't be written: {error.strerror}", "free some space, or choose another --runs-dir"
        ) from error
    return LoadTest(
        folder, plan, ready.schedule, offsets, ready.scenarios,
        hidden=ready.hidden, with_token=ready.means.with_token,
        target=ready.means.platform.from_plan(plan), recorder=recorder, ledger=Ledger(recorder, plan.intended),
        ends=folder.tail(Event), observer=observer,
    )  # fmt: skip


def _set_up(checked: Checked, means: RunContext) -> tuple[Plan, tuple[Input, ...]]:
    """Set up the platform, once per test: its experiment and pipeline exist afterwards."""
    settings = checked.settings
    plan = Plan(
        target=checked.target,
        host=means.simulator.url if means.simulator else settings.host,
        schedule={},
        intended=0,
        seed=settings.seed,
        simulated=means.simulator is not None,
        target_options=dict(checked.prepared.options),
        limits=settings.limits,
        slos=settings.slos,
        versions=versions(),
        command=("locust", *sys.argv[1:]),
        started_at=time.time_ns(),
        workers=means.workers,
        verify_tls=not settings.text("insecure"),
        redact=settings.redact,
    )
    target = means.platform.from_plan(plan, checked.prepared.package)
    if settings.cleanup is not Cleanup.NONE and not isinstance(target, Cleaning):
        raise ConfigError(f"--cleanup {settings.cleanup}: {plan.target} keeps no runs", "leave --cleanup out")
    client = HttpClient(plan.host, means.token, plan.limits, verify_tls=plan.verify_tls)
    try:
        found = target.set_up(client)
    finally:
        client.close()
    return replace(plan, target_options={**plan.target_options, **found.options}), found.inputs


def _due_times(schedule: Schedule | Concurrency, seed: int) -> "array[float]":
    if isinstance(schedule, Concurrency):
        return array("d")
    offsets = array("d", schedule.offsets(seed))
    if not offsets:
        raise ConfigError("the schedule holds no arrival", "give a higher rate or a longer time")
    return offsets


def _check_redaction(names: Sequence[str], scenarios: Sequence[Scenario], inputs: Sequence[Input]) -> None:
    """A name that was mistyped would let its values pass."""
    known = {name for scenario in scenarios[:1] for name in scenario.row} | {each.name for each in inputs}
    for name in names:
        if name not in known:
            raise ConfigError(f"--redact {name}: there is no such parameter", f"there are: {', '.join(sorted(known))}")


def _hidden(names: Sequence[str], scenarios: Sequence[Scenario], inputs: Sequence[Input]) -> tuple[str, ...]:
    """What these parameters are in the scenarios, and on the platform where a scenario leaves it that."""
    defaults = (as_cell(each.default) for each in inputs if each.name in names and each.default is not None)
    return tuple(dict.fromkeys((*values_of(names, (scenario.row for scenario in scenarios)), *defaults)))


def _check_baseline(checked: Checked, plan: Plan, offsets: "array[float]") -> None:
    if checked.baseline is not None:
        same = {"schedule": schedule_digest(offsets)} if offsets else {}
        checked.baseline[0].demand_same_load(replace(plan, digests=same))


def _make_folder(settings: Settings, ready: Ready) -> RunFolder:
    schedule, plan = ready.schedule, ready.plan
    size = schedule.most_in_flight if isinstance(schedule, Concurrency) else len(ready.offsets)
    name = settings.text("run-name") or run_name(plan.target, schedule.name, size, plan.started_at)
    return RunFolder.create(Path(settings.text("runs-dir") or "runs"), name)


def _keep_inputs(folder: RunFolder, ready: Ready) -> Plan:
    """Write the test's inputs and its plan, redacted; returns the plan as it is carried out."""
    redact, package, baseline = ready.plan.redact, ready.checked.prepared.package, ready.checked.baseline
    folder.replace(SCENARIOS, hide_columns(ready.kept, redact) if redact else ready.kept)
    digests = {"scenarios": hashlib.sha256(ready.kept).hexdigest()}
    if package is not None:
        folder.replace(PIPELINE, _without_values(ready, package))
        digests["pipeline"] = hashlib.sha256(package).hexdigest()
    if baseline is not None:
        keep_baseline(folder, baseline[1])
    redacted = (SCENARIOS, *([PIPELINE] if package is not None else [])) if redact else ()
    plan = replace(ready.plan, digests=digests, redacted=redacted)
    options = {
        # An option may be a document.
        name: _without_values(ready, value.encode()).decode()
        if isinstance(value, str) and value.startswith("{")
        else value
        for name, value in plan.target_options.items()
    }
    shown = _write_plan(folder, replace(plan, target_options=options), ready.offsets)
    return replace(plan, digests=shown.digests)


def _without_values(ready: Ready, document: bytes) -> bytes:
    if not ready.plan.redact:
        return document
    platform, redaction = ready.means.platform, Redaction(ready.hidden, ready.plan.redact)
    if isinstance(platform, Redactable):
        return platform.without_values(document, redaction)
    return str(redaction.clean_tree(document.decode(errors="replace"))).encode()


def _write_plan(folder: RunFolder, plan: Plan, offsets: "array[float]") -> Plan:
    _, digest = folder.write_schedule(offsets)
    plan = replace(plan, digests={**plan.digests, "schedule": digest})
    folder.write_plan(plan)
    return plan


def _start_observer(folder: RunFolder, recorder: Recorder, ready: Ready) -> Observer:
    settings, means = ready.checked.settings, ready.means
    environment = {VARIABLE: means.token}  # "" too: the observer must not find a token that is not for this host
    if own := processes.folder_of(means.platform):
        environment["PYTHONPATH"] = python_path(own)
    if means.simulator:
        environment["KUBECONFIG"] = means.simulator.kubeconfig
    hidden = column_of(settings.redact[0], ready.hidden) if settings.redact else b""
    observer = Observer(folder, recorder, settings.observing(), environment, hidden)
    observer.wait_until_observing()
    return observer
