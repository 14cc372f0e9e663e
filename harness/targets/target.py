"""What a platform must offer to be loaded, and where targets are found."""

import importlib
import pkgutil
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Protocol, cast

from harness.model.errors import ConfigError, PipeswarmError
from harness.model.http import Exchange
from harness.model.plan import Plan
from harness.model.scenario import Scenario


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


class Target(Protocol):
    """One platform, told by a plan's `target_options`."""

    def set_up(self, exchange: Exchange) -> Mapping[str, str]:
        """Find or make what runs need (experiment, pipeline version); once per test, before the first arrival.

        Returns:
            The ids found. They are added to the plan's `target_options`, from which workers and observer build theirs.

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


class _Module(Protocol):
    def from_plan(self, plan: Plan) -> Target: ...


def find(plan: Plan) -> Target:
    """The target a plan names.

    Raises:
        ConfigError: there is no such target, or its options can't work.
    """
    for entry in entry_points(group="pipeswarm.targets"):
        if entry.name == plan.target:
            return cast("_Module", entry.load()).from_plan(plan)
    if plan.target not in names():
        raise ConfigError(f"there is no target '{plan.target}'", f"targets are: {', '.join(names())}")
    return cast("_Module", importlib.import_module(f"{__package__}.{plan.target}")).from_plan(plan)


def names() -> list[str]:
    """The targets at hand, built-in and third-party."""
    package = importlib.import_module(__package__)
    modules = {m.name for m in pkgutil.iter_modules(package.__path__) if hasattr(_load(m.name), "from_plan")}
    return sorted(modules | {entry.name for entry in entry_points(group="pipeswarm.targets")})


def _load(name: str) -> object:
    return importlib.import_module(f"{__package__}.{name}")
