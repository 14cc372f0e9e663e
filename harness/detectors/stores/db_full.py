"""A volume that is not the artifact store's is full, such as the database's, and nothing states it yet."""

from harness.analysis.services.volumes import Volume, volumes
from harness.analysis.waits.stated import causes
from harness.detectors.detector import Capability, Evidence, Finding, Timeline, format_bytes, shell_word, slowed
from harness.model.phases import STORE_AVAILABLE_BYTES

NAME = "db-full"
NEEDS = (Capability.SUBMISSIONS, Capability.STORE)


def detect(timeline: Timeline) -> list[Finding]:
    """Volumes without space, whatever mounts them, unless the database says that its disk is full."""
    if any(cause.row and cause.row.name == NAME for cause in causes(timeline)):
        return []
    return [_full(volume) for volume in volumes(timeline) if volume.full and not volume.of_store]


def _full(volume: Volume) -> Finding:
    owner = f" of {volume.mounted_by}" if volume.mounted_by else ""
    name, namespace = shell_word(volume.name), shell_word(volume.namespace) if volume.namespace else "kubeflow"
    free = f"{format_bytes(volume.least)} of {format_bytes(volume.capacity)}"
    return Finding(
        NAME,
        f"The volume {volume.name}{owner} is full; no run is known to have failed because of it",
        0.9,
        (
            Evidence(
                f"free space on {volume.name} fell to {free}",
                volume.least, "B", "samples", f"metric = {STORE_AVAILABLE_BYTES} and volume = {volume.name}",
            ),
        ),
        "Expand the volume, or delete what its owner no longer needs. It is not the artifact store's.",
        (f"kubectl describe pvc {name} -n {namespace}",),
        slowed(0.1),
    )  # fmt: skip
