"""The test's runs where the platform shows them as objects: watched from their creation to their end.

Two watches: runs that have not ended, as metadata only, and those that have, each sent once with everything that it
holds. A run that ends leaves the first selection and enters the second.
"""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from harness.collectors.collector import Observation, ObserverSettings
from harness.collectors.journal import Journal
from harness.collectors.kubernetes.kube_api import KubeApi, Stream, client_of
from harness.collectors.kubernetes.reflector import Manifest, Reflector
from harness.collectors.runs.known_runs import KnownRuns
from harness.collectors.runs.tasks import record_task
from harness.collectors.source_health import SourceHealth
from harness.model.argo.nodes import is_offloaded
from harness.model.forgetting import Ids
from harness.model.live.observer import LiveObserver
from harness.model.phases import NOT_REACHABLE, RUNS_IN_FLIGHT
from harness.model.records import Event, Sample, Span, Submission
from harness.plan.kubeconfig import by_kubeconfig
from harness.targets.kube_service import KubeService, is_kube_service
from harness.targets.target import WatchesRuns

_PREFIX = "listOptions."
_UNKNOWN_TO_SERVER = "allowWatchBookmarks"
_METADATA, _WITHOUT_SPEC = "metadata,items.metadata", "-items.spec"
_METADATA_OF_EVENT, _EVENT_WITHOUT_SPEC = "result.type,result.object.metadata", "-result.object.spec"


class HostApi(KubeApi):
    """The Kubernetes API at the platform's own address with the credentials for it, or a service of the cluster."""

    def _connect(self) -> tuple[Any, str]:
        from kubernetes import client

        settings = self._settings
        if is_kube_service(settings.host):
            return self._through_proxy()
        configuration = client.Configuration(host=settings.host.rstrip("/"))
        configuration.verify_ssl = settings.verify_platform
        credentials = settings.credentials
        configuration.ssl_ca_cert = credentials.authorities or None
        configuration.cert_file, configuration.key_file = credentials.certificate or None, credentials.key or None
        api = client_of(configuration)
        for name, value in credentials.fields(settings.host).items():
            api.set_default_header(name, value)
        return api, settings.namespace

    def _through_proxy(self) -> tuple[Any, str]:
        api, _ = super()._connect()
        api.configuration.host += KubeService.parse(self._settings.host).proxied
        for name, value in self._settings.credentials.headers:
            api.set_default_header(name, value)
        return api, self._settings.namespace


class ServerApi(HostApi):
    """An Argo server.

    Source: https://argo-workflows.readthedocs.io/en/latest/swagger/ (``fields`` and ``listOptions`` of workflows).

    Args:
        settings: of the observer.
        journal: counts the requests.
        stream: path of the changes.
    """

    def __init__(self, settings: ObserverSettings, journal: Journal, stream: str) -> None:
        super().__init__(settings, journal)
        self._stream = stream

    def get(self, path: str, query: Mapping[str, str] | None = None, *, metadata_only: bool = False) -> dict[str, Any]:
        """See `KubeApi.get`."""
        fields = {"fields": _METADATA if metadata_only else _WITHOUT_SPEC}
        return super().get(path, _as_options(query or {}) | fields)

    def watch(self, path: str, query: Mapping[str, str], *, metadata_only: bool = False) -> Stream:  # noqa: ARG002  # the path of the list
        """See `KubeApi.watch`."""
        fields = {"fields": _METADATA_OF_EVENT if metadata_only else _EVENT_WITHOUT_SPEC}
        return super().watch(self._stream, _as_options(query) | fields)


def _as_options(query: Mapping[str, str]) -> dict[str, str]:
    return {f"{_PREFIX}{name}": value for name, value in query.items() if name != _UNKNOWN_TO_SERVER}


_LOOK_S = 0.5
_COUNT_EVERY = 2  # looks between two counts of the runs
_VANISHED_S = 10.0  # the other watch shows the end of a run, if it has one, within this time
_SOURCE = "runs"
OFFLOADED = "Argo keeps the nodes of large workflows in its database (nodeStatusOffLoad): their tasks are not shown"


class RunWatch:
    """Follows every run of the test, without a request per run.

    Args:
        observation: what to observe.
        target: the platform's target.
        api: that shows the runs.
        clock: monotonic seconds.
    """

    def __init__(
        self, observation: Observation, target: WatchesRuns, api: KubeApi, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._observation = observation
        self._journal = observation.journal
        self._target = target
        self._api = api
        self._clock = clock
        self._lock = threading.Lock()
        self._since = observation.plan.runs_since
        self._ledger = observation.folder.tail(Submission)
        self._submitted = Ids()
        self._gone: dict[str, float] = {}  # left the selection of running ones, by name: when
        self._offloaded = False
        self._counted_at: int | None = None  # every end until then was reported
        self._known = KnownRuns(observation.plan)
        self._known.resume(observation.folder.records(Event), observation.folder.records(Span))
        watched = target.watched()
        labels = [watched.labels] if watched.labels else []
        going, over = ([*labels, each] for each in (watched.over.replace("=", "!="), watched.over))
        self._reflectors = [
            Reflector(
                api, watched.path, {"labelSelector": ",".join(selection)}, see,
                health=SourceHealth(name, self._journal), journal=self._journal, tracks=tracks, metadata_only=tracks,
            )
            for name, selection, see, tracks in (
                (_SOURCE, going, self.see_going, True), (f"ended {_SOURCE}", over, self.see_over, False),
            )
        ]  # fmt: skip

    def collect(self, stop: threading.Event) -> None:
        """See `Collector`."""
        threads = [
            threading.Thread(target=each.follow, args=(stop,), name=f"watch-runs-{k}", daemon=True)
            for k, each in enumerate(self._reflectors)
        ]
        for thread in threads:
            thread.start()
        looks = 0
        while not stop.wait(_LOOK_S):
            self.look()
            if looks % _COUNT_EVERY == 0:
                self._journal.write(Sample(RUNS_IN_FLIGHT, self._journal.now(), float(len(self._known.open))))
            looks += 1
        self._api.interrupt()
        for thread in threads:
            thread.join()

    def live(self) -> LiveObserver | None:
        """See `Collector`."""
        if not all(reflector.looked for reflector in self._reflectors):
            return None
        with self._lock:
            return LiveObserver(runs=self._known.counts(), ends_at=self._counted_at)

    def look(self) -> None:
        """Tell the other collectors which runs are the test's, and give up those that were deleted."""
        if all(reflector.current for reflector in self._reflectors):
            self._counted_at = self._journal.now()
        for row in self._ledger.read():
            if row.run is not None:
                self._submitted.add(row.run)
        self._observation.activity.runs = self
        with self._lock:
            for name in [name for name, at in self._gone.items() if self._clock() - at >= _VANISHED_S]:
                del self._gone[name]
                if name in self._known.open:
                    for record in self._known.remove(name, self._journal.now()):
                        self._journal.write(record)

    def __contains__(self, run: object) -> bool:
        """Whether a run is the test's."""
        return run in self._submitted or run in self._known

    def see_going(self, change: str, manifest: Manifest) -> None:
        """A run that has not ended was created or changed; DELETED has ended or was deleted."""
        name = str(manifest["metadata"]["name"])
        with self._lock:
            if change == "DELETED":
                self._gone[name] = self._clock()
                return
            self._gone.pop(name, None)
            self._record(manifest)

    def see_over(self, change: str, manifest: Manifest) -> None:
        """A run has ended, as its complete object shows."""
        name = str(manifest["metadata"]["name"])
        with self._lock:
            if change == "DELETED" or name in self._known.over or not self._record(manifest):
                return
            self._gone.pop(name, None)
        self._note_offloaded(manifest)
        with suppress(ValueError):  # the collector of the cluster says which nodes can't be read
            for task in self._target.tasks_in(manifest):
                record_task(self._observation, name, task)

    def _record(self, manifest: Manifest) -> bool:
        run = self._target.read_run(manifest)
        if run.created_at and run.created_at < self._since:
            return False
        for record in self._known.see(run, self._journal.now()):
            self._journal.write(record)
        return True

    def _note_offloaded(self, manifest: Manifest) -> None:
        if is_offloaded(manifest.get("status") or {}) and not self._offloaded:
            self._offloaded = True
            self._journal.note(NOT_REACHABLE, "tasks", OFFLOADED)


def open_collector(observation: Observation) -> RunWatch | None:
    """Watches the runs if the plan's platform shows them as objects."""
    target, settings, journal = observation.target, observation.settings, observation.journal
    if not isinstance(target, WatchesRuns):
        return None
    if stream := target.watched().stream:
        return RunWatch(observation, target, ServerApi(settings, journal, stream))
    api = KubeApi if by_kubeconfig(observation.plan) else HostApi
    return RunWatch(observation, target, api(settings, journal))
