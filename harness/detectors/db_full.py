"""The database's disk, or another volume that is not the artifact store's, is full."""

from harness.analysis.services.volumes import Volume, volumes
from harness.analysis.timeline import Timeline
from harness.detectors.capability import Capability
from harness.detectors.database_errors import DatabaseError, find
from harness.detectors.detector import slowed
from harness.detectors.error_texts import DB_DISK_FULL
from harness.model.findings import Evidence, Finding
from harness.model.inert import shell_word
from harness.model.phases import STORE_AVAILABLE_BYTES
from harness.model.units import format_bytes

NAME = "db-full"
NEEDS = (Capability.SUBMISSIONS,)
USES = {Capability.POD_EVENTS: "the runs that failed because of it"}
FAULTS = ("db-full",)

_ERROR = DatabaseError(
    NAME,
    DB_DISK_FULL,
    "The database's disk is full",
    "Expand its volume, shorten the retention of runs, and delete the runs of load tests: each keeps its "
    "specification and its whole workflow in the database.",
    (
        "kubectl get pvc -n {namespace}",
        (
            "kubectl patch pvc mysql-pv-claim -n {namespace} -p "
            '\'{{"spec":{{"resources":{{"requests":{{"storage":"100Gi"}}}}}}}}\''
        ),
        "kubectl rollout restart deployment mysql -n {namespace}",
    ),
)


def detect(timeline: Timeline) -> list[Finding]:
    """MySQL's error 1114 in the API's responses; else volumes without space, whatever mounts them."""
    others = [volume for volume in volumes(timeline) if volume.full and not volume.of_store]
    return find(timeline, _ERROR) or [_full(volume) for volume in others]


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
