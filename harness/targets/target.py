"""What a platform must offer to be loaded, and what else it may offer.

Read from top to bottom: the values that a target takes and returns, the target itself, its optional capabilities, and
the platform that a module declares.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, Self, runtime_checkable

from harness.model.errors import ConfigError, PipeswarmError
from harness.model.http import Exchange
from harness.model.options import Option
from harness.model.plan import Plan
from harness.model.scenario import Scenario
from harness.model.text.redaction import Redaction
from harness.targets.completed_run import CompletedRun
from harness.targets.scenarios import Input

# The address of a platform whose runs are processes on the machine of the load generator.
PROCESSES = "process://localhost"


class RejectedError(PipeswarmError):
    """The platform answered a request with an error. `status` is the HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


# --- values -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Prepared:
    """What is known before the platform is contacted.

    `options` become the plan's `target_options`; `title` names in reports what is run; `inputs` is None when only the
    platform knows them; `package` is the document to upload, and `original` what it was prepared from, if it was; both
    are kept in the run folder. `inferred_with` is the option of `generate-scenarios` that reads the package.
    """

    options: Mapping[str, str]
    title: str
    inputs: tuple[Input, ...] | None = None
    package: bytes | None = None
    inferred_with: str = "--from-pipeline"
    original: bytes | None = None


@dataclass(frozen=True, slots=True)
class SetUp:
    """What set-up found on the platform.

    Attributes:
        options: ids, for the plan.
        inputs: that scenarios must match.
        versions: of the platform's components that name theirs.
        tenants: the only ones that scenarios may name; none where any may.
    """

    options: Mapping[str, str]
    inputs: tuple[Input, ...]
    versions: Mapping[str, str] = field(default_factory=dict)
    tenants: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ListedRun:
    """A run as a bulk listing shows it. Timestamps are the platform's own, in UTC ns, exact to `resolution_s`.

    `state` is one of `harness.model.phases.TERMINAL_STATES` once the run has ended, otherwise the platform's word.
    `reported_at` is when the platform itself learned of the end, where it distinguishes that from `ended_at`.
    `pipeline` is the pipeline or template that it runs, and `namespace` where; "" where the platform does not say.
    """

    id: str
    name: str
    state: str
    created_at: int
    ended_at: int | None
    error: str = ""
    resolution_s: float = 1.0
    reported_at: int | None = None
    pipeline: str = ""
    namespace: str = ""


@dataclass(frozen=True, slots=True)
class RunPage:
    """One page of a listing, newest run first; `next_page` is "" on the last page."""

    runs: tuple[ListedRun, ...]
    next_page: str = ""


@dataclass(frozen=True, slots=True)
class TaskDetail:
    """One task of a run. Timestamps are the platform's own, in UTC ns.

    `cached` means that the result came from the platform's cache and nothing was executed.
    """

    id: str
    name: str
    state: str
    started_at: int
    ended_at: int | None
    error: str = ""
    cached: bool = False


@dataclass(frozen=True, slots=True)
class Service:
    """A component of a platform with a cheap endpoint of its own; `url` is a path on the platform or an address."""

    name: str
    url: str


@dataclass(frozen=True, slots=True)
class Watched:
    """Where a platform shows its runs as objects that can be listed and watched, as Kubernetes does.

    `path` is the list's; `stream` that of the changes, "" where it is the same and is the Kubernetes API's. `labels`
    select the test's runs, "" for all of them; `over` those that have ended: each in turn enters that selection once.
    """

    path: str
    labels: str
    over: str
    stream: str = ""


class Cleanup(StrEnum):
    """What happens to the runs of a test at its end."""

    NONE = "none"
    TERMINATE = "terminate"  # runs that have not ended are terminated
    ARCHIVE = "archive"  # … and all are archived
    DELETE = "delete"  # … and all are deleted

    @classmethod
    def parse(cls, text: str) -> Self:
        """The member called `text`.

        Raises:
            ConfigError: there is none.
        """
        try:
            return cls(text)
        except ValueError:
            raise ConfigError(f"unknown clean-up '{text}'", f"use one of {', '.join(cls)}") from None


# --- the target -------------------------------------------------------------------------------------------------


class Target(Protocol):
    """One installation of a platform, described by a plan's `target_options`."""

    def set_up(self, exchange: Exchange) -> SetUp:
        """Find or create what runs need (experiment, pipeline version); once per test, before the first arrival.

        Raises:
            ConfigError: the platform has no such pipeline or version.
            TargetUnreachableError: there was no answer, or not this platform's.
        """
        ...

    def submit(self, scenario: Scenario, exchange: Exchange) -> str | CompletedRun:
        """Start one run with one request, never retried. Returns the run's id, or the run if it has ended already.

        A run that is a user's session may take several requests, of which those that change something are sent once.

        Raises:
            RejectedError: the platform answered with an error.
            TargetUnreachableError: there was no answer.
        """
        ...


# --- capabilities that a target may have ------------------------------------------------------------------------


@runtime_checkable
class SubmitsAhead(Protocol):
    """`submit` makes one request of the scenario alone, so that it may be made before the run is due.

    Of an open schedule, `submit` is called up to a second early, and its request waits for the due time: then nothing
    is left to do but to send it. A target whose `submit` takes time itself, or measures it, does not have this.

    Attributes:
        submits_ahead: to have it is enough.
    """

    submits_ahead: bool


@runtime_checkable
class ListsRuns(Protocol):
    """Runs continue after the submission is answered, and the platform lists them."""

    def list_runs(self, exchange: Exchange, page: str = "") -> RunPage:
        """One page of this test's runs, newest first: one request for many runs."""
        ...


@runtime_checkable
class WatchesRuns(Protocol):
    """Runs are objects that the platform lists once, and whose changes it then streams: no request per run."""

    def watched(self) -> Watched:
        """Where, and which of them are this test's."""
        ...

    def read_run(self, found: Mapping[str, Any]) -> ListedRun:
        """The run of an object; one that has not ended may be shown without specification and status."""
        ...

    def tasks_in(self, found: Mapping[str, Any]) -> tuple[TaskDetail, ...]:
        """The tasks that the object of an ended run describes.

        Raises:
            ValueError: they can't be read.
        """
        ...


@runtime_checkable
class ReportsBack(Protocol):
    """The platform calls back when a run ends, at ``target_options["callback_listen"]`` (host:port)."""

    def read_callback(self, body: bytes) -> CompletedRun | None:
        """The run that the posted body describes; None if it describes no run."""
        ...


@runtime_checkable
class DescribesTasks(Protocol):
    """The platform describes the tasks of a single run."""

    def read_tasks(self, exchange: Exchange, run: str) -> tuple[TaskDetail, ...]:
        """The tasks of one run: one request each, so worth making for a few runs only.

        Raises:
            TargetUnreachableError: there was no answer, or an unexpected one.
        """
        ...


@runtime_checkable
class LabelsPods(Protocol):
    """The pods of its runs are not those of Argo's workflows.

    Attributes:
        pod_label: the label that all of them have.
    """

    pod_label: str


@runtime_checkable
class RunsInService(Protocol):
    """A service executes the runs, and no pods of their own do.

    Attributes:
        replica_pods: a part of the names of its pods, and of no others.
    """

    replica_pods: str


@runtime_checkable
class HasServices(Protocol):
    """The platform consists of services whose health can be probed."""

    def services(self, exchange: Exchange) -> tuple[Service, ...]:
        """The services to probe; listing them may cost a request.

        Raises:
            TargetUnreachableError: there was no answer, or an unexpected one.
        """
        ...


@runtime_checkable
class NamesVersions(Protocol):
    """The platform can be asked whether it is there, and its components name their versions."""

    def versions(self, exchange: Exchange) -> Mapping[str, str]:
        """The versions by component, none where none is named; asking changes nothing.

        Raises:
            ConfigError: this platform needs an option that is missing.
            TargetUnreachableError: there was no answer, or not this platform's.
        """
        ...


@runtime_checkable
class CleansUp(Protocol):
    """Runs can be terminated, archived and deleted."""

    def clean(self, run: str, how: Cleanup, exchange: Exchange) -> None:
        """Apply one action (`TERMINATE`, `ARCHIVE` or `DELETE`) to one run. A run that no longer exists is fine.

        Raises:
            RejectedError: the platform answered with an error.
            TargetUnreachableError: there was no answer.
        """
        ...


@runtime_checkable
class Redactable(Protocol):
    """A capability of the platform rather than the target: its documents can be kept without parameter values."""

    def without_values(self, document: bytes, redaction: Redaction) -> bytes:
        """A package, or an option that is itself a document, without the values to hide."""
        ...


# --- the platform, and where it is found ------------------------------------------------------------------------


class Platform(Protocol):
    """What a target's module offers; third parties may register any object that does."""

    # Its own options.
    OPTIONS: Sequence[Option]
    # Its defaults for options that every target has; "simulate" is the profile that stands for it without a host, and
    # "host" the address where it needs none from the user.
    DEFAULTS: Mapping[str, str]
    # The environment variable from which the platform's own tools read its address.
    HOST_VARIABLE: str
    # Optional: TOKEN_VARIABLE, from which they read a token; NAMESPACE_VARIABLE, a namespace; INSECURE_VARIABLE, "true"
    # to skip TLS certificate checks; FILE_VARIABLES, files' names by our option; CLEANUPS, the ways to clean up where
    # it lacks some; OBSERVED_BY, the names of `target_options` that say which runs an observation without a load sees,
    # where they are not those of OPTIONS; own_host(texts), where DEFAULTS["host"] depends on its options.

    def prepare(self, texts: Mapping[str, str], *, simulated: bool) -> Prepared:
        """Check the options offline; `texts` are those of its own OPTIONS, and of ``namespace``.

        Raises:
            ConfigError: they can't work.
        """
        ...

    def from_plan(self, plan: Plan, package: bytes | None = None) -> Target:
        """The target of a plan; `package` is given where `set_up` has to upload it."""
        ...
