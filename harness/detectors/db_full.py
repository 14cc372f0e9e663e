"""The database's disk is full."""

from harness.analysis.timeline import Timeline
from harness.detectors.capability import Capability
from harness.detectors.database_errors import DatabaseError, find
from harness.detectors.error_texts import DB_DISK_FULL
from harness.model.findings import Finding

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
    """MySQL's error 1114 in the API's responses."""
    return find(timeline, _ERROR)
