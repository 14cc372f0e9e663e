"""ConfigMaps that clients make. Only Argo's workflows act on them: limits of semaphores, memoized outputs."""

from collections.abc import Mapping
from typing import Any

from harness.simulator.kube_api import Manifest, ObjectStore
from harness.simulator.kube_objects.components import CONFIGURATION
from harness.simulator.kube_objects.config_maps import AUTOSCALER_STATUS, ConfigMap

PLURAL = "configmaps"
_OF_PLATFORM = frozenset({CONFIGURATION, AUTOSCALER_STATUS})


class ClientMaps:
    """The ConfigMaps in `store` that are not the platform's."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._type = next(each for each in store.resources if each.plural == PLURAL)

    def has(self, plural: str, name: str) -> bool:
        """Whether an object is one of these."""
        return plural == PLURAL and name not in _OF_PLATFORM

    def make(self, namespace: str, document: Manifest) -> None:
        """Store a new one."""
        metadata = document["metadata"]
        self._put(namespace, metadata["name"], document.get("data") or {}, metadata.get("labels") or {})

    def patch(self, namespace: str, name: str, data: Mapping[str, Any]) -> None:
        """Change its data; null removes an entry."""
        before = self._store.get(self._type, namespace, name)
        known = before.snapshot if before is not None and isinstance(before.snapshot, ConfigMap) else None
        self._put(namespace, name, {**(known.data if known else {}), **data}, known.labels if known else {})

    def delete(self, namespace: str, name: str) -> None:
        """Delete it."""
        self._store.delete(PLURAL, namespace, name)

    def _put(self, namespace: str, name: str, data: Mapping[str, Any], labels: Mapping[str, Any]) -> None:
        texts = {str(key): str(value) for key, value in data.items() if value is not None}
        kept = {str(key): str(value) for key, value in labels.items()}
        self._store.put(PLURAL, namespace, name, ConfigMap(name, namespace, texts, kept))
