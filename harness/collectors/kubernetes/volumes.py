"""Free space of the platform's volumes, as the kubelets report it: ``kubectl get --raw …/proxy/stats/summary``."""

import threading
from collections.abc import Mapping
from typing import Any

from harness.collectors.collector import Observation
from harness.collectors.kubernetes.kube_api import KubeApi
from harness.collectors.source_health import Polling, SourceHealth, UnreachableError
from harness.model.live.observer import LiveObserver
from harness.model.phases import STORE_AVAILABLE_BYTES, STORE_CAPACITY_BYTES
from harness.model.records import Sample

_FIND_EVERY = 20  # rounds; a volume moves only with its pod
# Labels of pods that name their application.
_APPLICATION = ("app.kubernetes.io/name", "app", "app.kubernetes.io/component", "component")


class Volumes:
    """Polls the kubelets of nodes that run pods with volume claims in the platform's namespaces."""

    def __init__(self, observation: Observation) -> None:
        self._settings = observation.settings
        self._journal = observation.journal
        self._api = KubeApi(observation.settings, observation.journal)
        every_s = observation.settings.volumes_every_s
        self._polling = Polling(SourceHealth("volumes", observation.journal), self._read_all, every_s)
        self._nodes: tuple[str, ...] = ()
        self._mounted_by: dict[tuple[str, str], str] = {}  # by namespace and claim
        self._free: dict[str, float] = {}
        self._rounds = 0

    def collect(self, stop: threading.Event) -> None:
        """See `Collector`."""
        self._polling.follow(stop)

    def live(self) -> LiveObserver | None:
        """See `Collector`."""
        return LiveObserver(store_free_bytes=dict(self._free)) if self._polling.looked else None

    def _read_all(self) -> None:
        # Also after a failure: the pod may have moved.
        if self._rounds % _FIND_EVERY == 0 or not self._nodes or self._polling.lost:
            self._nodes = self._find_nodes()
        self._rounds += 1
        failed: UnreachableError | None = None
        for node in self._nodes:
            try:
                self._read(node)
            except UnreachableError as error:
                failed = error  # the other kubelets may respond
        if failed is not None:
            raise failed

    def _find_nodes(self) -> tuple[str, ...]:
        nodes = set()
        for namespace in self._settings.platform_namespaces:
            query = {"labelSelector": "!workflows.argoproj.io/workflow", "fieldSelector": "status.phase=Running"}
            pods = self._api.get(f"/api/v1/namespaces/{namespace}/pods", query)
            for pod in pods.get("items") or ():
                claims = _claims(pod)
                if claims and pod["spec"].get("nodeName"):
                    nodes.add(str(pod["spec"]["nodeName"]))
                    self._mounted_by |= {(namespace, claim): _application(pod) for claim in claims}
        return tuple(sorted(nodes))

    def _read(self, node: str) -> None:
        summary = self._api.get(f"/api/v1/nodes/{node}/proxy/stats/summary")
        at = self._journal.now()
        for pod in summary.get("pods") or ():
            for volume in pod.get("volume") or ():
                claim = volume.get("pvcRef") or {}
                if claim.get("namespace") not in self._settings.platform_namespaces:
                    continue
                labels = {"volume": str(claim["name"]), "namespace": str(claim["namespace"])}
                if application := self._mounted_by.get((labels["namespace"], labels["volume"])):
                    labels["mounted_by"] = application
                for metric, key in ((STORE_CAPACITY_BYTES, "capacityBytes"), (STORE_AVAILABLE_BYTES, "availableBytes")):
                    if key in volume:
                        self._journal.write(Sample(metric, at, float(volume[key]), labels))
                if "availableBytes" in volume:
                    self._free[labels["volume"]] = float(volume["availableBytes"])


def _claims(pod: Mapping[str, Any]) -> tuple[str, ...]:
    """The volume claims that a pod mounts."""
    volumes = (pod.get("spec") or {}).get("volumes") or ()
    return tuple(
        str(volume["persistentVolumeClaim"].get("claimName")) for volume in volumes if "persistentVolumeClaim" in volume
    )


def _application(pod: Mapping[str, Any]) -> str:
    """What its labels call it, which all of its replicas have in common; else its name."""
    metadata = pod.get("metadata") or {}
    labels = metadata.get("labels") or {}
    return str(next((labels[name] for name in _APPLICATION if labels.get(name)), metadata.get("name", "")))


def open_collector(observation: Observation) -> Volumes:
    """Reads through the API server's node proxy, which needs the permission to get ``nodes/proxy``."""
    return Volumes(observation)
