"""CPU and memory usage of all nodes and of the pods that work for the runs, as ``kubectl top`` shows it."""

import threading
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from harness.collectors.collector import Observation
from harness.collectors.kubernetes.kube_api import KubeApi
from harness.collectors.kubernetes.pod.life import label_of
from harness.collectors.kubernetes.replicas import has_replicas, is_replica
from harness.collectors.kubernetes.timestamps import stamp
from harness.collectors.polling import Polling
from harness.collectors.source_health import SourceHealth, UnreachableError
from harness.model.live.observer import LiveObserver
from harness.model.phases import NODE_CPU_CORES, NODE_MEMORY_BYTES, POD_CPU_CORES, POD_MEMORY_BYTES
from harness.model.records import Sample
from harness.model.units import parse_quantity

_API = "/apis/metrics.k8s.io/v1beta1"
_NOT_FOUND, _FORBIDDEN = 404, 403


class MetricsServer:
    """Polls metrics-server, which itself samples every 15 s or so; each sample is recorded once."""

    def __init__(self, observation: Observation) -> None:
        self._journal = observation.journal
        self._api = KubeApi(observation.settings, observation.journal)
        every_s = observation.settings.resources_every_s
        self._polling = Polling(SourceHealth("metrics-server", observation.journal), self._read, every_s)
        namespace = observation.settings.namespace
        self._target = observation.plan.target
        self._pods = f"{_API}/namespaces/{namespace}/pods" if namespace else f"{_API}/pods"
        self._recorded: dict[tuple[str, str], int] = {}  # in the latest look, by namespace and name

    def collect(self, stop: threading.Event) -> None:
        """See `Collector`."""
        self._polling.follow(stop)

    def live(self) -> LiveObserver | None:
        """See `Collector`."""
        return LiveObserver(metrics_server=not self._polling.lost) if self._polling.looked else None

    def _read(self) -> None:
        shown: dict[tuple[str, str], int] = {}
        try:
            self._read_nodes(shown)
            self._read_pods(shown)
            self._recorded = shown
        except UnreachableError as error:
            if error.status in {_NOT_FOUND, _FORBIDDEN}:
                why = f"metrics-server is not installed, or access is denied: {error}"
                raise UnreachableError(why, error.status) from error
            raise

    def _read_nodes(self, shown: dict[tuple[str, str], int]) -> None:
        for item in self._api.get(f"{_API}/nodes").get("items") or ():
            name = str(item["metadata"]["name"])
            if at := self._new_sample(shown, "", name, item):
                usage, labels = [item.get("usage") or {}], {"node": name}
                self._write(Sample(NODE_CPU_CORES, at, 0.0, labels), usage, "cpu")
                self._write(Sample(NODE_MEMORY_BYTES, at, 0.0, labels), usage, "memory")

    def _read_pods(self, shown: dict[tuple[str, str], int]) -> None:
        """Of the runs' pods; where a service executes the runs, of its replicas."""
        own = has_replicas(self._target)
        asked = {} if own else {"labelSelector": label_of(self._target)}
        for item in self._api.get(self._pods, asked).get("items") or ():
            metadata = item["metadata"]
            name = str(metadata["name"])
            if own and not is_replica(self._target, name):
                continue
            if at := self._new_sample(shown, str(metadata.get("namespace", "")), name, item):
                usage, labels = [each.get("usage") or {} for each in item.get("containers") or ()], {"pod": name}
                self._write(Sample(POD_CPU_CORES, at, 0.0, labels), usage, "cpu")
                self._write(Sample(POD_MEMORY_BYTES, at, 0.0, labels), usage, "memory")

    def _new_sample(self, shown: dict[tuple[str, str], int], namespace: str, name: str, item: Mapping[str, Any]) -> int:
        """When the sample was taken, UTC ns; 0 when it has been recorded."""
        taken = stamp(item.get("timestamp"))
        at = taken.at if taken else self._journal.now()
        before = self._recorded.get((namespace, name), 0)
        shown[namespace, name] = self._recorded[namespace, name] = max(before, at)
        return at if at > before else 0

    def _write(self, sample: Sample, usage: Iterable[Mapping[str, str]], resource: str) -> None:
        """Record `sample` with the sum of the containers' usage as its value, if any is known."""
        known = [parse_quantity(each[resource]) for each in usage if each.get(resource) is not None]
        if known:
            self._journal.write(replace(sample, value=sum(known)))


def open_collector(observation: Observation) -> MetricsServer:
    """Polls through the API server. That it is not installed is recorded, and it is retried now and then."""
    return MetricsServer(observation)
