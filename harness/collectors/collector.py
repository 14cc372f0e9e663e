"""What a collector is, what it is given, and where collectors are found."""

import importlib
import pkgutil
import threading
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Protocol, cast

from harness.collectors.journal import Journal
from harness.collectors.probes.s3 import Bucket
from harness.model.plan import Plan
from harness.store.folder import RunFolder
from harness.targets.target import Target


@dataclass(frozen=True, slots=True)
class ObserverSettings:
    """How to reach what is observed, and how often to ask.

    Attributes:
        host: of the platform's API, as the load was given it.
        token: bearer token of the platform's API; never recorded.
        namespace: of the runs; "" is every namespace that may be listed.
        platform_namespaces: where the platform itself runs, with its artifact store.
        kubeconfig: a file; none is what ``KUBECONFIG`` names, or the service account when running in a pod.
        kube_context: of the kubeconfig; none is the current one.
        prometheus: address of a Prometheus; none is to do without.
        prometheus_token: bearer token for it; never recorded.
        metrics: pairs of a profile's name and the address of a ``/metrics`` page to scrape where no Prometheus does.
        profiles: metric profiles to ask the Prometheus for; none is all.
        verify_tls: check certificates of the platform's API and of the Prometheus.
        connect_timeout_s: for a connection.
        answer_timeout_s: for an answer.
        least_poll_s: the runs are listed at most so often …
        most_poll_s: … and at least so often.
        request_share: the listing's share of the platform's requests that it keeps below.
        requests_per_s: bound on requests to the Kubernetes API.
        volumes_every_s: how often the free space of volumes is read.
        resources_every_s: how often metrics-server is asked.
        probe_every_s: how often the object store and services are probed.
        scrape_every_s: how often ``/metrics`` pages are scraped, and a Prometheus is asked for the present.
        store_probe: a bucket of the artifact store that may be written to; none is to leave it alone.
        redact: names of parameters whose values must not reach the folder.
        redact_from: scenarios that hold these values; none is the folder's own.
    """

    host: str
    token: str = ""
    namespace: str = ""
    platform_namespaces: tuple[str, ...] = ("kubeflow",)
    kubeconfig: str | None = None
    kube_context: str | None = None
    prometheus: str | None = None
    prometheus_token: str = ""
    metrics: tuple[tuple[str, str], ...] = ()
    profiles: tuple[str, ...] | None = None
    verify_tls: bool = True
    connect_timeout_s: float = 5.0
    answer_timeout_s: float = 30.0
    least_poll_s: float = 1.0
    most_poll_s: float = 60.0
    request_share: float = 0.05
    requests_per_s: float = 20.0
    volumes_every_s: float = 3.0
    resources_every_s: float = 10.0
    scrape_every_s: float = 15.0
    probe_every_s: float = 10.0
    store_probe: Bucket | None = None
    redact: tuple[str, ...] = ()
    redact_from: Path | None = None


@dataclass(slots=True)
class Activity:
    """What one collector tells the others of the present.

    `pods` of runs that live now, the runs that pods have worked for, and of the runs of whose end the platform has
    taken note (`kept`) whether they ended well; none where that isn't seen.
    """

    pods: int | None = None
    worked: AbstractSet[str] | None = None
    kept: Mapping[str, bool] | None = None


@dataclass(frozen=True, slots=True)
class Observation:
    """What every collector is given."""

    folder: RunFolder
    plan: Plan
    target: Target
    settings: ObserverSettings
    journal: Journal
    activity: Activity = field(default_factory=Activity)


class Collector(Protocol):
    """One source. Runs in a thread of its own."""

    def collect(self, stop: threading.Event) -> None:
        """Record what the source shows until `stop` is set, and once more then.

        A source that can't be reached is normal: a `SourceHealth` records it and says when to ask again. An exception
        is a defect: it is recorded, and `collect` is called again.
        """
        ...

    def live(self) -> Mapping[str, object]:
        """What it knows of the present, for people who watch; empty until it has first looked, or tried to."""
        ...


class Source(Protocol):
    """What a collector's module offers; third parties may register any object that does."""

    def open_collector(self, observation: Observation) -> Collector | None:
        """The collector of an observation; none when there is nothing for it to do.

        Raises:
            ConfigError: it can't work as it is configured.
        """
        ...


def sources() -> dict[str, Source]:
    """The sources at hand by name, built-in and third-party."""
    package = importlib.import_module(__package__)
    found: dict[str, Source] = {}
    for module in pkgutil.walk_packages(package.__path__, f"{__package__}."):
        loaded = importlib.import_module(module.name)
        if hasattr(loaded, "open_collector"):
            found[module.name.rpartition(".")[2]] = cast("Source", loaded)
    for entry in entry_points(group="pipeswarm.collectors"):
        found[entry.name] = cast("Source", entry.load())
    return found
