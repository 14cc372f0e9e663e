"""CPU and memory in use, as ``kubectl top`` shows them: of all nodes, and of the pods of runs."""

import threading
from collections.abc import Mapping
from typing import Any

from harness.collectors.collector import Observation
from harness.collectors.kubernetes.kube_api import KubeApi
from harness.collectors.kubernetes.pods import WORKFLOW
from harness.collectors.kubernetes.timestamps import stamp
from harness.collectors.polling import Polling
from harness.collectors.source_health import SourceHealth, UnreachableError
from harness.model.phases import NODE_CPU_CORES, NODE_MEMORY_BYTES, POD_CPU_CORES, POD_MEMORY_BYTES
from harness.model.records import Sample
from harness.model.units import parse_quantity

_API = "/apis/metrics.k8s.io/v1beta1"
_NOT_FOUND, _FORBIDDEN = 404, 403


class MetricsServer:
    """Asks metrics-server, which itself looks every 15 s or so; a sample is recorded once."""

    def __init__(self, observation: Observation) -> None:
        self._journal = observation.journal
        self._api = KubeApi(observation.settings, observation.journal)
        every_s = observation.settings.resources_every_s
        self._polling = Polling(SourceHealth("metrics-server", observation.journal), self._read, every_s)
        namespace = observation.settings.namespace
        self._pods = f"{_API}/namespaces/{namespace}/pods" if namespace else f"{_API}/pods"
        self._recorded: dict[tuple[str, str], int] = {}

    def collect(self, stop: threading.Event) -> None:
        """See `Collector`."""
        self._polling.follow(stop)

    def live(self) -> Mapping[str, object]:
        """See `Collector`; it shows nothing."""
        return {"metrics_server": not self._polling.lost} if self._polling.looked else {}

    def _read(self) -> None:
        try:
            self._read_nodes()
            self._read_pods()
        except UnreachableError as error:
            if error.status in {_NOT_FOUND, _FORBIDDEN}:
                why = f"metrics-server is not installed, or may not be asked: {error}"
                raise UnreachableError(why, error.status) from error
            raise

    def _read_nodes(self) -> None:
        for item in self._api.get(f"{_API}/nodes").get("items") or ():
            name = str(item["metadata"]["name"])
            at = self._new("", name, item)
            if at:
                usage = item.get("usage") or {}
                self._write(NODE_CPU_CORES, at, "node", name, [usage.get("cpu")])
                self._write(NODE_MEMORY_BYTES, at, "node", name, [usage.get("memory")])

    def _read_pods(self) -> None:
        for item in self._api.get(self._pods, {"labelSelector": WORKFLOW}).get("items") or ():
            metadata = item["metadata"]
            name = str(metadata["name"])
            at = self._new(str(metadata.get("namespace", "")), name, item)
            if at:
                used = [each.get("usage") or {} for each in item.get("containers") or ()]
                self._write(POD_CPU_CORES, at, "pod", name, [each.get("cpu") for each in used])
                self._write(POD_MEMORY_BYTES, at, "pod", name, [each.get("memory") for each in used])

    def _new(self, namespace: str, name: str, item: Mapping[str, Any]) -> int:
        """When the sample was taken, UTC ns; 0 when it is recorded already."""
        told = stamp(item.get("timestamp"))
        at = told.at if told else self._journal.now()
        if self._recorded.get((namespace, name), 0) >= at:
            return 0
        self._recorded[namespace, name] = at
        return at

    def _write(self, metric: str, at: int, label: str, name: str, quantities: list[str | None]) -> None:
        known = [parse_quantity(each) for each in quantities if each is not None]
        if known:
            self._journal.write(Sample(metric, at, sum(known), {label: name}))


def open_collector(observation: Observation) -> MetricsServer:
    """Asks through the API server; where it is not installed, that is recorded and it is asked again now and then."""
    return MetricsServer(observation)
