"""The database's disk is full."""

from harness.analysis.timeline import Timeline
from harness.detectors.database import DISK_FULL, Trouble, find
from harness.detectors.detector import SUBMISSIONS
from harness.model.findings import Finding

NAME = "db-full"
NEEDS = (SUBMISSIONS,)

_TROUBLE = Trouble(
    NAME,
    DISK_FULL,
    "The database's disk is full",
    "Give its volume more room, keep runs for less long, and delete the runs of load tests: each keeps its "
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
    """MySQL's error 1114 in what the API answered."""
    return find(timeline, _TROUBLE)
