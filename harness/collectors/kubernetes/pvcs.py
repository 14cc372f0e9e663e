"""The volume claims of the platform and of the runs: their sizes, and whether they are bound."""

from harness.collectors.journal import Journal
from harness.collectors.kubernetes.reflector import Manifest
from harness.model.phases import CLAIM_CAPACITY_BYTES
from harness.model.records import Event, Sample
from harness.model.units import parse_quantity

KIND = "PersistentVolumeClaim"
_BOUND = "Bound"


class Claims:
    """Records a claim that is new, and changes of its phase or size."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._known: dict[str, tuple[str, str]] = {}

    def see(self, change: str, manifest: Manifest) -> None:
        """Take in a claim that is new, changed or gone."""
        metadata, spec, status = manifest["metadata"], manifest.get("spec") or {}, manifest.get("status") or {}
        name, namespace, uid = str(metadata["name"]), str(metadata.get("namespace", "")), str(metadata["uid"])
        requested = ((spec.get("resources") or {}).get("requests") or {}).get("storage", "")
        phase = "Deleted" if change == "DELETED" else str(status.get("phase") or "Pending")
        size = str((status.get("capacity") or {}).get("storage") or requested)
        before = self._known.get(uid)
        if before == (phase, size):
            return
        self._known[uid] = (phase, size)
        at, storage_class = self._journal.now(), spec.get("storageClassName") or "the default"
        severity = "Normal" if phase in {_BOUND, "Deleted"} else "Warning"
        text = f"{size} of StorageClass {storage_class}, in {namespace}"
        self._journal.write(Event(at, KIND, name, phase, text, "kubernetes", type=severity))
        if phase == _BOUND and size:
            labels = {"volume": name, "namespace": namespace}
            self._journal.write(Sample(CLAIM_CAPACITY_BYTES, at, parse_quantity(size), labels))
