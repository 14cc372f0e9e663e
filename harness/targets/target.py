"""What a platform must offer to be loaded, and where targets are found."""

import importlib
import pkgutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any, Protocol, cast

from harness.model.errors import ConfigError, PipeswarmError
from harness.model.http import Exchange
from harness.model.plan import Plan
from harness.model.scenario import Scenario
from harness.targets.scenarios import Input


class RejectedError(PipeswarmError):
    """The platform answered a submission with an error. `status` is the HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True, slots=True)
class ListedRun:
    """A run as a bulk listing shows it. Stamps are the platform's own, in UTC ns, exact to `resolution_s`.

    `state` is one of `harness.model.phases.TERMINAL_STATES` once the run is over, otherwise the platform's word.
    """

    id: str
    name: str
    state: str
    created_at: int
    ended_at: int | None
    error: str = ""
    resolution_s: float = 1.0


@dataclass(frozen=True, slots=True)
class RunPage:
    """One page of a listing, newest first; `next_page` is "" on the last one."""

    runs: tuple[ListedRun, ...]
    next_page: str = ""


@dataclass(frozen=True, slots=True)
class Prepared:
    """What can be known without the platform.

    `options` become the plan's `target_options`; `title` names what is run in reports; `inputs` are none when only the
    platform knows them; `package` is what will be uploaded, kept in the run folder.
    """

    options: Mapping[str, str]
    title: str
    inputs: tuple[Input, ...] | None = None
    package: bytes | None = None


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

    def submit(self, scenario: Scenario, exchange: Exchange) -> str:
        """Start one run with one request, never retried, and return the platform's id of it.

        Raises:
            RejectedError: the platform answered with an error.
            TargetUnreachableError: there was no answer.
        """
        ...

    def list_runs(self, exchange: Exchange, page: str = "") -> RunPage:
        """One page of this test's runs, newest first: one request for many runs."""
        ...


class Platform(Protocol):
    """What a target's module offers; third parties may register any object that does."""

    # Its own command-line options: (name, default, help, more for argparse and the web form).
    OPTIONS: Sequence[tuple[str, str, str, Mapping[str, Any]]]

    def prepare(self, texts: Mapping[str, str], *, simulated: bool) -> Prepared:
        """Check the options offline.

        Raises:
            ConfigError: they can't work.
        """
        ...

    def from_plan(self, plan: Plan, package: bytes | None = None) -> Target:
        """The target of a plan; `package` is handed over where `set_up` has to upload it."""
        ...


def find(name: str) -> Platform:
    """The platform called `name`.

    Raises:
        ConfigError: there is no such target.
    """
    for entry in entry_points(group="pipeswarm.targets"):
        if entry.name == name:
            return cast("Platform", entry.load())
    if name not in names():
        raise ConfigError(f"there is no target '{name}'", f"targets are: {', '.join(names())}")
    return cast("Platform", importlib.import_module(f"{__package__}.{name}"))


def names() -> list[str]:
    """The targets at hand, built-in and third-party."""
    modules = pkgutil.iter_modules(importlib.import_module(__package__).__path__)
    built_in = {m.name for m in modules if hasattr(importlib.import_module(f"{__package__}.{m.name}"), "from_plan")}
    return sorted(built_in | {entry.name for entry in entry_points(group="pipeswarm.targets")})
