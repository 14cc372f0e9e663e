"""CPU and memory usage of all nodes and of the pods that work for the runs, as ``kubectl top`` shows it."""

import threading
from collections.abc import Iterable, Mapping
from typing import Any

from harness.collectors.collector import Observation
from harness.collectors.kubernetes.kube_api import KubeApi
from harness.collectors.kubernetes.pod.life import label_of
from harness.collectors.kubernetes.replicas import is_replica
from harness.collectors.kubernetes.timestamps import stamp
from harness.collectors.source_health import Polling, SourceHealth, UnreachableError
from harness.model.live.observer import LiveObserver
from harness.model.phases import NODE_CPU_CORES, NODE_MEMORY_BYTES, POD_CPU_CORES, POD_MEMORY_BYTES
from harness.model.records import Sample
from harness.model.units import parse_quantity
from harness.targets.target import RunsInService

_API = "/apis/metrics.k8s.io/v1beta1"
_NOT_FOUND, _FORBIDDEN = 404, 403
_METRICS = {"node": (NODE_CPU_CORES, NODE_MEMORY_BYTES), "pod": (POD_CPU_CORES, POD_MEMORY_BYTES)}
_Key = tuple[str, str]  # namespace and name


class MetricsServer:
    """Polls metrics-server, which itself samples every 15 s or so; each sample is recorded once."""

    def __init__(self, observation: Observation) -> None:
        self._journal = observation.journal
        self._api = KubeApi(observation.settings, observation.journal)
        every_s = observation.settings.resources_every_s
        self._polling = Polling(SourceHealth("metrics-server", observation.journal), self._read, every_s)
        namespace = observation.settings.namespace
        self._target = observation.target
        self._path = f"{_API}/namespaces/{namespace}/pods" if namespace else f"{_API}/pods"
        # When the newest sample of each object was taken (UTC ns), of the latest look: who is gone is forgotten.
        self._newest: dict[str, dict[_Key, int]] = {"node": {}, "pod": {}}

    def collect(self, stop: threading.Event) -> None:
        """See `Collector`."""
        self._polling.follow(stop)

    def live(self) -> LiveObserver | None:
        """See `Collector`."""
        return LiveObserver(metrics_server=not self._polling.lost) if self._polling.looked else None

    def _read(self) -> None:
        try:
            self._newest["node"] = self._record("node", self._items(f"{_API}/nodes"))
            self._newest["pod"] = self._record("pod", self._pods())
        except UnreachableError as error:
            if error.status in {_NOT_FOUND, _FORBIDDEN}:
                why = f"metrics-server is not installed, or access is denied: {error}"
                raise UnreachableError(why, error.status) from error
            raise

    def _items(self, path: str, **query: str) -> Iterable[Mapping[str, Any]]:
        return self._api.get(path, query).get("items") or ()

    def _pods(self) -> Iterable[Mapping[str, Any]]:
        """The runs' pods; where a service executes the runs, its replicas."""
        if not isinstance(self._target, RunsInService):
            return self._items(self._path, labelSelector=label_of(self._target))
        return (pod for pod in self._items(self._path) if is_replica(self._target, str(pod["metadata"]["name"])))

    def _record(self, kind: str, items: Iterable[Mapping[str, Any]]) -> dict[_Key, int]:
        """Record the samples that are newer than at the last look; returns when each object's newest was taken."""
        newest = {}
        for item in items:
            key = str(item["metadata"].get("namespace", "")), str(item["metadata"]["name"])
            taken = stamp(item.get("timestamp"))
            at, before = taken.at if taken else self._journal.now(), self._newest[kind].get(key, 0)
            newest[key] = max(before, at)
            if at > before:
                # A node's usage is its own, a pod's that of its containers.
                usage = [container.get("usage") or {} for container in item.get("containers") or (item,)]
                for metric, resource in zip(_METRICS[kind], ("cpu", "memory"), strict=True):
                    known = [parse_quantity(each[resource]) for each in usage if each.get(resource) is not None]
                    if known:
                        self._journal.write(Sample(metric, at, sum(known), {kind: key[1]}))
        return newest


def open_collector(observation: Observation) -> MetricsServer:
    """Polls through the API server. That it is not installed is recorded, and it is retried now and then."""
    return MetricsServer(observation)
