"""What a platform must offer to be loaded, and where targets are found."""

import importlib
import pkgutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Protocol, cast, runtime_checkable

from harness.model.errors import ConfigError, PipeswarmError
from harness.model.http import Exchange
from harness.model.options import Option
from harness.model.phases import NETWORK, RUN, SUCCEEDED
from harness.model.plan import Plan
from harness.model.records import Event, Span
from harness.model.redaction import Redaction
from harness.model.scenario import Scenario
from harness.targets.scenarios import Input


class RejectedError(PipeswarmError):
    """The platform answered a submission with an error. `status` is the HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class CompletedRun:
    """A run that is over with its answer: the platform lists nothing, so the answer is all that is to be known.

    `phases` are what the platform measured, (phase, seconds) in their order. The rest of the exchange is the network,
    as long as an empty exchange takes (`empty_s`), and beyond that waiting, which belongs to the phase `waiting`.
    `node` is who did the work, where the answer says it.
    """

    run: str
    state: str
    error: str = ""
    task: str = ""
    phases: tuple[tuple[str, float], ...] = ()
    waiting: str = NETWORK
    empty_s: float = 0.0
    node: str | None = None

    def records(self, sent_at: int, ended_at: int, source: str) -> Iterator[Span | Event]:
        """What a run folder holds of it: the run, its phases one after the other, and its end.

        The phases fill the time from `sent_at` to `ended_at` exactly, so that no two clocks are compared.
        """
        yield Span(self.run, "", RUN, sent_at, ended_at, task=self.task, source=source)
        if self.phases:
            yield from self._stretches(sent_at, ended_at, source)
        kind = "Normal" if self.state == SUCCEEDED else "Warning"
        yield Event(ended_at, "Run", self.run, self.state, self.error, source, self.run, type=kind)

    def _stretches(self, sent_at: int, ended_at: int, source: str) -> Iterator[Span]:
        measured_s = sum(seconds for _, seconds in self.phases)
        rest_s = max(0.0, (ended_at - sent_at) / 1e9 - measured_s)
        network_s = min(self.empty_s, rest_s) if self.waiting != NETWORK else rest_s
        lengths = dict.fromkeys((NETWORK, self.waiting, *(name for name, _ in self.phases)), 0.0)
        for name, seconds in ((NETWORK, network_s), (self.waiting, rest_s - network_s), *self.phases):
            lengths[name] += seconds
        at = sent_at
        for name, seconds in lengths.items():
            end = min(ended_at, at + round(seconds * 1e9))
            yield Span(self.run, self.run, name, at, end, task=self.task, node=self.node, source=source)
            at = end


@dataclass(frozen=True, slots=True)
class ListedRun:
    """A run as a bulk listing shows it. Stamps are the platform's own, in UTC ns, exact to `resolution_s`.

    `state` is one of `harness.model.phases.TERMINAL_STATES` once the run is over, otherwise the platform's word.
    `said_at` is when the platform itself learned that it is over, where it tells that apart from `ended_at`.
    """

    id: str
    name: str
    state: str
    created_at: int
    ended_at: int | None
    error: str = ""
    resolution_s: float = 1.0
    said_at: int | None = None


@dataclass(frozen=True, slots=True)
class RunPage:
    """One page of a listing, newest first; `next_page` is "" on the last one."""

    runs: tuple[ListedRun, ...]
    next_page: str = ""


@dataclass(frozen=True, slots=True)
class Prepared:
    """What can be known without the platform.

    `options` become the plan's `target_options`; `title` names what is run in reports; `inputs` are none when only the
    platform knows them; `package` is what will be uploaded, kept in the run folder; `inferred_with` is the option of
    `generate-scenarios` that reads it.
    """

    options: Mapping[str, str]
    title: str
    inputs: tuple[Input, ...] | None = None
    package: bytes | None = None
    inferred_with: str = "--from-pipeline"


@dataclass(frozen=True, slots=True)
class SetUp:
    """What the platform added: `options` (ids) for the plan, and what the scenarios have to fit."""

    options: Mapping[str, str]
    inputs: tuple[Input, ...]


class Target(Protocol):
    """One platform, told by a plan's `target_options`."""

    def set_up(self, exchange: Exchange) -> "SetUp":
        """Find or make what runs need (experiment, pipeline version); once per test, before the first arrival.

        Raises:
            ConfigError: the platform has no such pipeline, version, ….
            TargetUnreachableError: it does not answer as this platform.
        """
        ...

    def submit(self, scenario: Scenario, exchange: Exchange) -> str | CompletedRun:
        """Start one run with one request, never retried, and return the platform's id of it, or how it ended.

        Raises:
            RejectedError: the platform answered with an error.
            TargetUnreachableError: there was no answer.
        """
        ...


@runtime_checkable
class Listing(Protocol):
    """A target whose platform goes on with a run after it has answered, and lists runs."""

    def list_runs(self, exchange: Exchange, page: str = "") -> RunPage:
        """One page of this test's runs, newest first: one request for many runs."""
        ...


@runtime_checkable
class CalledBack(Protocol):
    """A target whose platform calls back when a run is over, at ``target_options["callback_listen"]`` (host:port)."""

    def read_callback(self, body: bytes) -> CompletedRun | None:
        """How the run ended, by the body that the platform posts; none when it is not that of a run."""
        ...


@dataclass(frozen=True, slots=True)
class TaskDetail:
    """A task of a run as the platform tells of it; stamps are its own, in UTC ns.

    `cached` says that it was answered from the platform's cache instead of being executed.
    """

    id: str
    name: str
    state: str
    started_at: int
    ended_at: int | None
    error: str = ""
    cached: bool = False


@runtime_checkable
class Detailing(Protocol):
    """A target whose platform tells of a single run what became of its tasks."""

    def read_tasks(self, exchange: Exchange, run: str) -> tuple[TaskDetail, ...]:
        """The tasks of a run: one request, worth making for a few runs only.

        Raises:
            TargetUnreachableError: there was no answer, or none that is understood.
        """
        ...


@dataclass(frozen=True, slots=True)
class Service:
    """A part of a platform with a cheap request of its own; `url` is a path at the platform, or an address."""

    name: str
    url: str


@runtime_checkable
class Probed(Protocol):
    """A target whose platform consists of services that can be asked whether they are well."""

    def services(self, exchange: Exchange) -> tuple[Service, ...]:
        """What can be asked; the list may cost a request.

        Raises:
            TargetUnreachableError: there was no answer, or none that is understood.
        """
        ...


@runtime_checkable
class Redactable(Protocol):
    """A platform whose documents hold values of parameters, and can be kept without them."""

    def without_values(self, document: bytes, redaction: Redaction) -> bytes:
        """A package, or an option that is a document itself, without the values that are to be hidden."""
        ...


class Platform(Protocol):
    """What a target's module offers; third parties may register any object that does."""

    # Its own options.
    OPTIONS: Sequence[Option]
    # Its defaults for options that every target has; "simulate" is the profile that stands for it without a host.
    DEFAULTS: Mapping[str, str]
    # The environment variable that says where the platform is, as its own tools read it.
    HOST_VARIABLE: str

    def prepare(self, texts: Mapping[str, str], *, simulated: bool) -> Prepared:
        """Check the options offline; `texts` are those of its own OPTIONS, and of ``namespace``.

        Raises:
            ConfigError: they can't work.
        """
        ...

    def from_plan(self, plan: Plan, package: bytes | None = None) -> Target:
        """The target of a plan; `package` is handed over where `set_up` has to upload it."""
        ...


def find(name: str) -> Platform:
    """The platform called `name`: an entry point, one of this package's modules, or any module that is a platform.

    Raises:
        ConfigError: there is no such target.
    """
    for entry in entry_points(group="pipeswarm.targets"):
        if entry.name == name:
            return cast("Platform", entry.load())
    for module in (f"{__package__}.{name}", name):
        if (found := _platform_in(module)) is not None:
            return found
    raise ConfigError(f"there is no target '{name}'", f"targets are: {', '.join(names())}, or a module of your own")


def _platform_in(module: str) -> Platform | None:
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as missing:
        if missing.name is not None and f"{module}.".startswith(f"{missing.name}."):
            return None
        raise  # it is there, and needs another that is not
    return cast("Platform", found) if hasattr(found, "from_plan") else None


def names() -> list[str]:
    """The targets at hand, built-in and third-party."""
    modules = pkgutil.iter_modules(importlib.import_module(__package__).__path__)
    built_in = {m.name for m in modules if hasattr(importlib.import_module(f"{__package__}.{m.name}"), "from_plan")}
    return sorted(built_in | {entry.name for entry in entry_points(group="pipeswarm.targets")})
