"""The database has no connection left for the API server."""

from harness.analysis.timeline import Timeline
from harness.detectors.capability import Capability
from harness.detectors.database_errors import DatabaseError, find
from harness.detectors.error_texts import DB_CONNECTIONS
from harness.model.findings import Finding

NAME = "db-connections"
NEEDS = (Capability.SUBMISSIONS,)
USES = {Capability.POD_EVENTS: "the runs that failed because of it"}
FAULTS = ("db-connections",)

_MYSQL = "kubectl exec -n {namespace} deploy/mysql -- mysql -u root -e"
_ERROR = DatabaseError(
    NAME,
    DB_CONNECTIONS,
    "The database is out of connections",
    "Raise the database's max_connections, or poll the API less: list runs in bulk instead of getting each one.",
    (
        # The container does not run as root: without the user name the client would log in as another user.
        f"{_MYSQL} \"SHOW GLOBAL STATUS LIKE 'Max_used_connections'\"",
        f"{_MYSQL} 'SET GLOBAL max_connections = 1000'",
    ),
)


def detect(timeline: Timeline) -> list[Finding]:
    """MySQL's error 1040 in the API's responses."""
    return find(timeline, _ERROR)
