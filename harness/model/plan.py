"""Everything needed to repeat a test: the run folder's manifest."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from harness.model.text.typed import from_plain


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on what a test may do, and on how long it may wait."""

    drain_s: float = 600.0  # wait for the last runs after the last arrival
    max_in_flight: int = 10_000  # open requests per worker; arrivals beyond it are missed
    connect_timeout_s: float = 10.0
    answer_timeout_s: float = 60.0
    max_error_ratio: float = 0.05  # of the submissions; with more rejected ones no test counts as passed
    fail_undecided: bool = False  # a test whose SLOs are met and not proven does not count as passed


@dataclass(frozen=True, slots=True)
class ObserverPlan:
    """What is observed in addition to the runs, and how it is reached; never a token, key or password.

    Attributes:
        platform_namespaces: where the platform itself runs, with its artifact store.
        kube_context: of the kubeconfig; "" is the current one.
        kube_requests_per_s: limit on requests to the Kubernetes API.
        prometheus: its address; "" is none.
        metric_profiles: to query it for; none is all.
        metrics: (profile, address) of ``/metrics`` pages to scrape.
        store_probe: bucket that probe objects are written to, as ``s3://NAME``; "" is none.
        collector_options: (name, text) of options that collectors declare themselves.
        verify_tls: whether the certificates of all this are checked; the platform's own are the plan's matter.
    """

    platform_namespaces: tuple[str, ...] = ("kubeflow",)
    kube_context: str = ""
    kube_requests_per_s: float = 20.0
    prometheus: str = ""
    metric_profiles: tuple[str, ...] = ()
    metrics: tuple[tuple[str, str], ...] = ()
    store_probe: str = ""
    collector_options: tuple[tuple[str, str], ...] = ()
    verify_tls: bool = True


_MAX_SKEW_NS = 120 * 10**9


@dataclass(frozen=True, slots=True)
class Plan:
    """Target, scenarios, schedule, limits: everything needed to repeat the test.

    `schedule` and `target_options` are plain values, so that the manifest can be read without Pipeswarm. `digests` are
    SHA-256 of the pipeline, the scenarios and the schedule; `command` repeats the test. `versions` are those of our own
    software, `platform_versions` those that the platform's components named at the start.
    """

    target: str
    host: str
    schedule: Mapping[str, object]
    intended: int
    seed: int
    simulated: bool
    target_options: Mapping[str, object] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)
    slos: tuple[str, ...] = ()
    digests: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    command: tuple[str, ...] = ()
    started_at: int = 0
    workers: int = 1
    verify_tls: bool = True
    redact: tuple[str, ...] = ()  # parameters whose values are hidden in what is recorded
    redacted: tuple[str, ...] = ()  # files kept without these values; their digests are of what was given
    observer: ObserverPlan = field(default_factory=ObserverPlan)
    platform_versions: Mapping[str, str] = field(default_factory=dict)
    traced: bool = False  # each submission names its trace, so that the platform's spans join it
    name: str = ""  # given with --run-name; "" for that of `run_name`
    id: str = ""  # of a test that is driven here; a worker's records name it, wherever they are found

    @classmethod
    def from_mapping(cls, raw: Mapping[str, Any]) -> Self:
        """The plan of plain values, as JSON or Locust's messages carry them.

        Fields of a newer version are left out; those that an older version lacks have their defaults.

        Raises:
            TypeError: a field is missing, or is not of its type.
        """
        return from_plain(cls, raw)

    @property
    def runs_since(self) -> int:
        """Runs that were created before, UTC ns, are not the plan's: the platform's clock may be behind a load's."""
        # Without a load: stamps of runs are whole seconds.
        return self.started_at - (_MAX_SKEW_NS if self.schedule else self.started_at % 10**9)

    @property
    def tenants(self) -> tuple[str, ...]:
        """The tenants with a namespace of that name each; none where all runs are in one namespace."""
        return tuple(filter(None, str(self.target_options.get("tenants") or "").split(";")))
