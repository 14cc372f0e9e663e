"""The interface of a collector, what it is given, and where collectors are found."""

import importlib
import pkgutil
import threading
from collections.abc import Callable, Container, Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, fields, replace
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Protocol, Self, cast

from harness.collectors.http import Http, Timeouts
from harness.collectors.journal import Journal
from harness.collectors.metrics import profiles_file
from harness.collectors.probes.s3 import Bucket
from harness.model.errors import ConfigError, suggestion
from harness.model.live.observer import LiveObserver
from harness.model.options import Option
from harness.model.plan import ObserverPlan, Plan
from harness.plan.kubeconfig import route_of
from harness.store.folder import RunFolder
from harness.targets.credentials import Credentials
from harness.targets.target import Target

PROMETHEUS_TOKEN = "PIPESWARM_PROMETHEUS_TOKEN"  # noqa: S105  # the name of a variable
_NONE = Credentials()


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserverSettings(ObserverPlan):
    """How to reach what is observed, and how often to ask: the plan's part, and what no plan records.

    Attributes:
        host: address of the platform's API, as the load was given it.
        credentials: for the platform's API; never recorded.
        verify_platform: check the certificate of the platform's API.
        namespace: of the runs; "" is every namespace that may be listed.
        tenants: namespaces of the runs, where there are several.
        kubeconfig: a file; none is what ``KUBECONFIG`` names, or the service account when running in a pod.
        prometheus_token: bearer token for it; never recorded.
        connect_timeout_s: for a connection.
        answer_timeout_s: for a response.
        least_poll_s: shortest interval between listings of the runs …
        most_poll_s: … and the longest.
        request_share: the listing's maximum share of the platform's requests.
        volumes_every_s: interval between readings of the volumes' free space.
        resources_every_s: interval between requests to metrics-server.
        probe_every_s: interval between probes of the object store and of services.
        scrape_every_s: interval between scrapes of ``/metrics`` pages, and between instant queries of Prometheus.
        bucket: that of `store_probe`, with its keys; none is not probed.
        redact: names of parameters whose values must not reach the folder.
        redact_from: scenarios that hold these values; none is the folder's own.
    """

    host: str
    credentials: Credentials = _NONE
    verify_platform: bool = True
    namespace: str = ""
    tenants: tuple[str, ...] = ()
    kubeconfig: str | None = None
    prometheus_token: str = ""
    connect_timeout_s: float = 5.0
    answer_timeout_s: float = 30.0
    least_poll_s: float = 1.0
    most_poll_s: float = 60.0
    request_share: float = 0.05
    volumes_every_s: float = 3.0
    resources_every_s: float = 10.0
    scrape_every_s: float = 15.0
    probe_every_s: float = 10.0
    bucket: Bucket | None = None
    redact: tuple[str, ...] = ()
    redact_from: Path | None = None

    @property
    def own_namespaces(self) -> tuple[str, ...]:
        """Those of the runs; empty where that is every namespace."""
        return self.tenants or ((self.namespace,) if self.namespace else ())

    @classmethod
    def of(
        cls, plan: Plan, credentials: Credentials, environment: Mapping[str, str], redact_from: Path | None = None
    ) -> Self:
        """The settings for a plan; the Prometheus token and keys of the object store come from `environment`.

        Raises:
            ConfigError: there is no such metric profile, or no bucket or keys to probe.
        """
        observer = plan.observer
        for name in observer.metric_profiles:
            profiles_file.load(name)
        return cls(
            **{each.name: getattr(observer, each.name) for each in fields(observer)},
            host=plan.host,
            credentials=credentials,
            verify_platform=plan.verify_tls,
            namespace=str(plan.target_options.get("namespace", "")),
            tenants=plan.tenants,
            prometheus_token=environment.get(PROMETHEUS_TOKEN, ""),
            bucket=Bucket.parse(observer.store_probe, environment) if observer.store_probe else None,
            redact=plan.redact,
            redact_from=redact_from,
        )


@dataclass(slots=True)
class Activity:
    """What the collectors of the cluster and of the runs share about the present; none is not observed.

    Attributes:
        runs: the test's runs so far.
        pods: pods of runs that are alive.
        worked: runs that pods have worked for.
        persisted: runs whose end the platform has persisted, and whether they succeeded.
        unfinished: runs whose workflow is there and is not over.
    """

    runs: Container[str] | None = None
    pods: int | None = None
    worked: Container[str] | None = None
    persisted: Mapping[str, bool] | None = None
    unfinished: AbstractSet[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What every collector is given.

    Attributes:
        folder: of the run.
        plan: of the test.
        target: the platform.
        settings: how to reach it and its cluster.
        journal: takes the records.
        activity: what collectors share with each other.
        options: values of the collectors' own options (`OPTIONS`), by name; see `read_options`.
    """

    folder: RunFolder
    plan: Plan
    target: Target
    settings: ObserverSettings
    journal: Journal
    activity: Activity = field(default_factory=Activity)
    options: Mapping[str, Any] = field(default_factory=dict)

    def connect(self, source: str, host: str, credentials: Credentials = _NONE) -> Http:
        """An exchange with a source at `host` as the settings ask for, whose requests are counted under `source`.

        Raises:
            ConfigError: `host` is not an http(s) address.
        """
        settings = self.settings
        timeouts = Timeouts(settings.connect_timeout_s, settings.answer_timeout_s)
        return Http(source, host, credentials, timeouts, count=self.journal.count, verify_tls=settings.verify_tls)

    def platform(self, source: str) -> Http:
        """An exchange with the platform, on the way that its plan names.

        Raises:
            ConfigError: it can't be reached like this.
        """
        return to_platform(source, self.plan, self.settings, self.journal.count)


def to_platform(
    source: str, plan: Plan, settings: ObserverSettings, count: Callable[[str], None] = lambda _endpoint: None
) -> Http:
    """An exchange with the platform of a plan; requests are counted under `source`.

    Raises:
        ConfigError: it can't be reached like this.
    """
    # The plan of a folder may come from anybody: it does not say whether certificates are checked.
    route = route_of(replace(plan, verify_tls=settings.verify_platform), settings.credentials)
    timeouts = Timeouts(settings.connect_timeout_s, settings.answer_timeout_s)
    return Http(
        source, route.address, route.credentials, timeouts,
        count=count, verify_tls=route.verify_tls, prepare_tls=route.prepare_tls,
    )  # fmt: skip


class Collector(Protocol):
    """One source of records. Runs in a thread of its own."""

    def collect(self, stop: threading.Event) -> None:
        """Record what the source shows until `stop` is set, and then once more.

        An unreachable source is normal: a `SourceHealth` records it and says when to retry. An exception is an
        internal error: it is recorded, and `collect` is called again.
        """
        ...

    def live(self) -> LiveObserver | None:
        """Its fields of the live view; none until the source was read once, or was found unreachable."""
        ...


class Source(Protocol):
    """What a collector's module offers; third parties may register any object that does.

    A source may also have options of its own: a sequence of `Option` called ``OPTIONS``. They are given with
    ``--collector-option NAME=VALUE``; their values arrive as `Observation.options`.
    """

    def open_collector(self, observation: Observation) -> Collector | None:
        """The collector of an observation; none when there is nothing to collect.

        Raises:
            ConfigError: the configuration can't work.
        """
        ...


def sources() -> dict[str, Source]:
    """All sources by name, built-in and third-party."""
    package = importlib.import_module(__package__)
    found: dict[str, Source] = {}
    for module in pkgutil.walk_packages(package.__path__, f"{__package__}."):
        loaded = importlib.import_module(module.name)
        if hasattr(loaded, "open_collector"):
            found[module.name.rpartition(".")[2]] = cast("Source", loaded)
    for entry in entry_points(group="pipeswarm.collectors"):
        found[entry.name] = cast("Source", entry.load())
    return found


def collector_options() -> tuple[Option, ...]:
    """The collectors' own options, by the names of their sources."""
    return tuple(option for _, source in sorted(sources().items()) for option in getattr(source, "OPTIONS", ()))


def read_options(given: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """The values of all collectors' own options: as `given` in texts, or their defaults.

    Raises:
        ConfigError: no collector has such an option, or its text has no value.
    """
    texts, declared = dict(given), {option.name: option for option in collector_options()}
    for name in texts:
        if name not in declared:
            known = ", ".join(sorted(declared)) or "none"
            hint = f"{suggestion(name, declared)}known options: {known}"
            raise ConfigError(f"--collector-option {name}: no collector has this option", hint)
    return {name: option.read(texts.get(name, ""), f"--collector-option {name}") for name, option in declared.items()}
