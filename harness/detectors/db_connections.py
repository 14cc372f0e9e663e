"""The database has no connection left for the API server."""

from harness.analysis.timeline import Timeline
from harness.detectors.database import CONNECTIONS, Trouble, find
from harness.detectors.detector import SUBMISSIONS
from harness.model.findings import Finding

NAME = "db-connections"
NEEDS = (SUBMISSIONS,)

_MYSQL = "kubectl exec -n {namespace} deploy/mysql -- mysql -u root -e"
_TROUBLE = Trouble(
    NAME,
    CONNECTIONS,
    "The database is out of connections",
    "Raise the database's max_connections, or poll the API less: list runs in bulk instead of getting each one.",
    (
        # Its container does not run as root: without the user's name the client would ask as somebody else.
        f"{_MYSQL} \"SHOW GLOBAL STATUS LIKE 'Max_used_connections'\"",
        f"{_MYSQL} 'SET GLOBAL max_connections = 1000'",
    ),
)


def detect(timeline: Timeline) -> list[Finding]:
    """MySQL's error 1040 in what the API answered."""
    return find(timeline, _TROUBLE)
