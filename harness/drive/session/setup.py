"""Everything before the first arrival: set up the platform, make the run folder, start the observer."""

import hashlib
import secrets
import shutil
import sys
import time
from array import array
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from harness.drive import processes
from harness.drive.background import Observer
from harness.drive.http.clients import client_of
from harness.drive.recording.end_rate import EndRate
from harness.drive.recording.ledger import Ledger
from harness.drive.workers import descriptors
from harness.model.errors import ConfigError
from harness.model.plan import Plan
from harness.model.records import Event
from harness.model.scenario import Scenario
from harness.model.schedules import Concurrency, Replay, Schedule
from harness.model.text.redaction import Redaction, column_of, hide_columns
from harness.plan import kubeconfig
from harness.plan.assignment import Assignment
from harness.plan.environment import handing, python_path
from harness.plan.plans import PlannedTest, plan_arrivals, plan_load
from harness.plan.validate import Checked, demand_known_tenants
from harness.store.baselines import keep_baseline
from harness.store.claims import Claim
from harness.store.folder import ORIGINAL, PIPELINE, SCENARIOS, Recorder, RunFolder, Tail
from harness.store.reasons import keep_reasons
from harness.targets.credentials import Credentials
from harness.targets.kube_service import KubeService, is_kube_service
from harness.targets.target import CleansUp, Cleanup, Platform, Redactable, SetUp, Target
from harness.targets.token_command import expiry


@dataclass(frozen=True, slots=True)
class RunContext:
    """What a test needs in addition to its configuration."""

    platform: Platform
    credentials: Credentials  # none if they were given for another host
    with_credentials: bool  # whether workers may send their own
    simulator: processes.Simulator | None
    workers: int


@dataclass(frozen=True, slots=True)
class Ready:
    """A planned test whose platform is set up; nothing has been written yet."""

    checked: Checked
    context: RunContext
    test: PlannedTest


@dataclass(slots=True)
class LoadTest:
    """A test that can start. The due times of a closed schedule are complete only when its dispatch has ended."""

    folder: RunFolder
    plan: Plan
    schedule: Schedule | Concurrency
    offsets: "array[float]"
    scenarios: list[Scenario]
    hidden: tuple[str, ...]
    with_credentials: bool
    target: Target
    recorder: Recorder
    ledger: Ledger
    ends: Tail[Event]
    observer: Observer
    claim: Claim
    end_rate: EndRate = field(default_factory=EndRate)

    def assignment(self, t0_at: int) -> Assignment:
        """All arrivals, for a load generator that starts at `t0_at`."""
        return Assignment(
            str(self.folder.path.resolve()), self.plan, self.scenarios, self.offsets, t0_at,
            hidden=self.hidden, with_credentials=self.with_credentials,
        )  # fmt: skip

    def note(self, reason: str, message: str, at: int | None = None) -> None:
        """Record an event of the test itself, at `at` (UTC ns) or now."""
        self.recorder.write(Event(at or time.time_ns(), "Test", self.folder.path.name, reason, message))

    def settle(self) -> None:
        """Write the final due times of a closed schedule."""
        self.ledger.intended = len(self.offsets)
        _write_plan(self.folder, replace(self.folder.read_plan(), intended=len(self.offsets)), self.offsets)


def get_ready(checked: Checked, context: RunContext) -> Ready:
    """Set up the platform and check everything that needs it.

    Raises:
        ConfigError: the configuration can't work.
        TargetUnreachableError: the platform does not respond as expected.
    """
    plan, set_up = _set_up(checked, context)
    test = plan_arrivals(checked, plan, set_up.inputs)
    demand_known_tenants(test.scenarios, set_up.tenants)
    descriptors.demand(test.offsets, plan.limits, context.workers)
    return Ready(checked, context, test)


def open_test(ready: Ready) -> LoadTest:
    """Make the run folder and start the observer.

    Raises:
        ConfigError: the folder can't be made or written, or the observer rejects its options.
    """
    settings, test = ready.checked.settings, ready.test
    folder = RunFolder.create(
        settings.runs_dir, settings.run_name or test.run_name,
        exactly=bool(settings.run_name), overwrite=settings.overwrite,
    )  # fmt: skip
    recorder, claim = folder.recorder(), Claim(folder.path)
    try:
        plan = _keep_inputs(folder, ready)
        observer = _start_observer(folder, recorder, ready)
    except (ConfigError, OSError) as error:
        recorder.close()
        claim.release()
        shutil.rmtree(folder.path)
        if isinstance(error, ConfigError):
            raise
        raise ConfigError(
            f"{folder.path} can't be written: {error.strerror}", "free some space, or choose another --runs-dir"
        ) from error
    opened = LoadTest(
        folder, plan, test.schedule, test.offsets, test.scenarios,
        hidden=test.hidden, with_credentials=ready.context.with_credentials,
        target=ready.context.platform.from_plan(plan), recorder=recorder, ledger=Ledger(recorder, plan.intended),
        ends=folder.tail(Event), observer=observer, claim=claim,
    )  # fmt: skip
    _note_expiry(opened, ready.context.credentials)
    return opened


def _note_expiry(test: LoadTest, credentials: Credentials) -> None:
    """Record until when the token is good that the test starts with; never the token."""
    with suppress(ConfigError):  # a file that is being replaced
        at_s = expiry(replace(credentials, token_command=()).fields(test.plan.host).get("Authorization", ""))
        if at_s is not None:
            test.note("TokenExpires", f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%d %H:%M:%S} UTC")


def _set_up(checked: Checked, context: RunContext) -> tuple[Plan, SetUp]:
    """Set up the platform, once per test: its experiment and pipeline exist afterwards."""
    settings = checked.settings
    plan = plan_load(
        checked, context.simulator.url if context.simulator else settings.host, simulated=context.simulator is not None,
        command=("locust", *sys.argv[1:]), started_at=time.time_ns(), workers=context.workers,
    )  # fmt: skip
    if is_kube_service(plan.host):
        KubeService.parse(plan.host)  # a mistyped one is reported as such
    if kubeconfig.names_kubeconfig(plan.host) and not context.with_credentials:  # any visitor can enter a host
        raise ConfigError("the kubeconfig is not for hosts of the web form", f"start with --host {plan.host}")
    plan = kubeconfig.resolved(plan)
    target = context.platform.from_plan(plan, checked.prepared.package)
    if settings.cleanup is not Cleanup.NONE and not isinstance(target, CleansUp):
        raise ConfigError(f"--cleanup {settings.cleanup}: {plan.target} keeps no runs", "leave --cleanup out")
    ways = getattr(context.platform, "CLEANUPS", tuple(Cleanup))
    if settings.cleanup not in {Cleanup.NONE, *ways}:
        raise ConfigError(
            f"--cleanup {settings.cleanup}: {plan.target} has no such clean-up", f"use {' or '.join(ways)}"
        )
    client = client_of(plan, context.credentials)
    try:
        setup = target.set_up(client)
    finally:
        client.close()
    options = {**plan.target_options, **setup.options}
    return replace(plan, target_options=options, platform_versions=setup.versions), setup


def _keep_inputs(folder: RunFolder, ready: Ready) -> Plan:
    """Write the test's inputs and its plan, redacted; returns the plan as it is carried out."""
    test, package, baseline = ready.test, ready.checked.prepared.package, ready.checked.baseline
    redact = test.plan.redact
    folder.replace(SCENARIOS, hide_columns(test.table, redact) if redact else test.table)
    digests = {"scenarios": hashlib.sha256(test.table).hexdigest()}
    documents = {PIPELINE: package, ORIGINAL: ready.checked.prepared.original}
    kept = {name: document for name, document in documents.items() if document is not None}
    for name, document in kept.items():
        folder.replace(name, _redacted(ready, document))
    if package is not None:
        digests["pipeline"] = hashlib.sha256(package).hexdigest()
    if baseline is not None:
        keep_baseline(folder, baseline[1])
    if ready.checked.reasons is not None:
        keep_reasons(folder, ready.checked.reasons)
    redacted = (SCENARIOS, *kept) if redact else ()
    plan = replace(test.plan, id=secrets.token_hex(16), digests=digests, redacted=redacted)
    options = {
        # An option may be a document.
        name: _redacted(ready, value.encode()).decode() if isinstance(value, str) and value.startswith("{") else value
        for name, value in plan.target_options.items()
    }
    shown = _write_plan(folder, replace(plan, target_options=options), test.offsets, test.schedule)
    return replace(plan, digests=shown.digests)


def _redacted(ready: Ready, document: bytes) -> bytes:
    redact = ready.test.plan.redact
    if not redact:
        return document
    platform, redaction = ready.context.platform, Redaction(ready.test.hidden, redact)
    if isinstance(platform, Redactable):
        return platform.without_values(document, redaction)
    return str(redaction.clean_tree(document.decode(errors="replace"))).encode()


def _write_plan(
    folder: RunFolder, plan: Plan, offsets: "array[float]", schedule: Schedule | Concurrency | None = None
) -> Plan:
    named = (schedule.scenarios, schedule.tenants) if isinstance(schedule, Replay) else ()
    _, digest = folder.write_schedule(offsets, *named)
    plan = replace(plan, digests={**plan.digests, "schedule": digest})
    folder.write_plan(plan)
    return plan


def _start_observer(folder: RunFolder, recorder: Recorder, ready: Ready) -> Observer:
    redact, context = ready.test.plan.redact, ready.context
    environment = handing(context.credentials)
    if own := processes.folder_of(context.platform):
        environment["PYTHONPATH"] = python_path(own)
    if context.simulator:
        environment["KUBECONFIG"] = context.simulator.kubeconfig
    hidden = column_of(redact[0], ready.test.hidden) if redact else b""
    observer = Observer(folder, ready.test.plan, recorder, environment, hidden)
    try:
        observer.wait_until_observing()
    except ConfigError:
        observer.end()
        raise
    return observer
