"""Before the first arrival: the platform is set up, the folder made, the observer started. What can fail fails here."""

import hashlib
import os
import shutil
import sys
import time
from array import array
from dataclasses import dataclass, replace

from harness.drive import processes
from harness.drive.background import Observer
from harness.drive.http_client import HttpClient
from harness.drive.ledger import Ledger
from harness.model.errors import ConfigError
from harness.model.plan import Plan
from harness.model.records import Event
from harness.model.redaction import Redaction, column_of, hide_columns
from harness.model.scenario import Scenario
from harness.model.schedules import Concurrency, Schedule
from harness.plan.assignment import Assignment
from harness.plan.plans import PlannedTest, plan_arrivals, plan_load
from harness.plan.validate import Checked
from harness.store.baselines import keep_baseline
from harness.store.folder import PIPELINE, SCENARIOS, Recorder, RunFolder, Tail
from harness.targets.bearer import VARIABLE
from harness.targets.scenarios import Input
from harness.targets.target import CleansUp, Cleanup, Platform, Redactable, Target


@dataclass(frozen=True, slots=True)
class RunContext:
    """What a test is made with, beside its configuration."""

    platform: Platform
    token: str  # "" where the host is not the one that it was given for
    with_token: bool  # whether workers may send theirs
    simulator: processes.Simulator | None
    workers: int


@dataclass(frozen=True, slots=True)
class Ready:
    """All that a test needs but its run folder; until then nothing has been made."""

    checked: Checked
    means: RunContext
    test: PlannedTest


@dataclass(slots=True)
class LoadTest:
    """A test that may begin. Due times and plan of a closed one are known only when its dispatch is over."""

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

    def order(self, t0_at: int) -> Assignment:
        """What the crew is to do, from `t0_at` on."""
        return Assignment(
            self.folder.path.name, self.plan, self.scenarios, self.offsets, t0_at,
            hidden=self.hidden, with_token=self.with_token,
        )  # fmt: skip

    def note(self, reason: str, message: str, at: int | None = None) -> None:
        """An event of the test itself, in the run folder."""
        self.recorder.write(Event(at or time.time_ns(), "Test", self.folder.path.name, reason, message))

    def settle(self) -> None:
        """All that was due is known now: write it down."""
        self.ledger.intended = len(self.offsets)
        _write_plan(self.folder, replace(self.folder.read_plan(), intended=len(self.offsets)), self.offsets)


def get_ready(checked: Checked, means: RunContext) -> Ready:
    """Set the platform up, and find out all that could still be wrong.

    Raises:
        ConfigError: something that was given can't work.
        TargetUnreachableError: the platform does not answer as this platform.
    """
    plan, inputs = _set_up(checked, means)
    return Ready(checked, means, plan_arrivals(checked, plan, inputs))


def open_test(ready: Ready) -> LoadTest:
    """Make the folder, and start to observe.

    Raises:
        ConfigError: the folder can't be made or written, or the observer can't work with its options.
    """
    settings, test = ready.checked.settings, ready.test
    folder = RunFolder.create(settings.runs_dir, settings.run_name or test.run_name)
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
            f"{folder.path} can't be written: {error.strerror}", "make room, or see --runs-dir"
        ) from error
    return LoadTest(
        folder, plan, test.schedule, test.offsets, test.scenarios,
        hidden=test.hidden, with_token=ready.means.with_token,
        target=ready.means.platform.from_plan(plan), recorder=recorder, ledger=Ledger(recorder, plan.intended),
        ends=folder.tail(Event), observer=observer,
    )  # fmt: skip


def _set_up(checked: Checked, means: RunContext) -> tuple[Plan, tuple[Input, ...]]:
    """Once per test, whatever the number of workers: experiment and pipeline are on the platform then."""
    settings = checked.settings
    plan = plan_load(
        checked, means.simulator.url if means.simulator else settings.host, simulated=means.simulator is not None,
        command=("locust", *sys.argv[1:]), started_at=time.time_ns(), workers=means.workers,
    )  # fmt: skip
    target = means.platform.from_plan(plan, checked.prepared.package)
    if settings.cleanup is not Cleanup.NONE and not isinstance(target, CleansUp):
        raise ConfigError(f"--cleanup {settings.cleanup}: {plan.target} keeps no runs", "leave --cleanup out")
    carrier = HttpClient(plan.host, means.token, plan.limits, verify_tls=plan.verify_tls)
    try:
        found = target.set_up(carrier)
    finally:
        carrier.close()
    return replace(plan, target_options={**plan.target_options, **found.options}), found.inputs


def _keep_inputs(folder: RunFolder, ready: Ready) -> Plan:
    """Write the test's inputs and its plan, without what is to be hidden; returns the plan as it is carried out."""
    test, package, baseline = ready.test, ready.checked.prepared.package, ready.checked.baseline
    redact = test.plan.redact
    folder.replace(SCENARIOS, hide_columns(test.table, redact) if redact else test.table)
    digests = {"scenarios": hashlib.sha256(test.table).hexdigest()}
    if package is not None:
        folder.replace(PIPELINE, _without_values(ready, package))
        digests["pipeline"] = hashlib.sha256(package).hexdigest()
    if baseline is not None:
        keep_baseline(folder, baseline[1])
    redacted = (SCENARIOS, *([PIPELINE] if package is not None else [])) if redact else ()
    plan = replace(test.plan, digests=digests, redacted=redacted)
    options = {
        # An option may be a document itself.
        name: _without_values(ready, value.encode()).decode()
        if isinstance(value, str) and value.startswith("{")
        else value
        for name, value in plan.target_options.items()
    }
    shown = _write_plan(folder, replace(plan, target_options=options), test.offsets)
    return replace(plan, digests=shown.digests)


def _without_values(ready: Ready, document: bytes) -> bytes:
    redact = ready.test.plan.redact
    if not redact:
        return document
    platform, redaction = ready.means.platform, Redaction(ready.test.hidden, redact)
    if isinstance(platform, Redactable):
        return platform.without_values(document, redaction)
    return str(redaction.clean_tree(document.decode(errors="replace"))).encode()


def _write_plan(folder: RunFolder, plan: Plan, offsets: "array[float]") -> Plan:
    _, digest = folder.write_schedule(offsets)
    plan = replace(plan, digests={**plan.digests, "schedule": digest})
    folder.write_plan(plan)
    return plan


def _start_observer(folder: RunFolder, recorder: Recorder, ready: Ready) -> Observer:
    redact, means = ready.test.plan.redact, ready.means
    environment = {VARIABLE: means.token}  # "" too: the observer must not find a token that is not for this host
    if own := processes.folder_of(means.platform):
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), own)))
    if means.simulator:
        environment["KUBECONFIG"] = means.simulator.kubeconfig
    hidden = column_of(redact[0], ready.test.hidden) if redact else b""
    observer = Observer(folder, recorder, environment, hidden)
    observer.wait_until_it_looks()
    return observer
