"""The database refuses connections because all are in use, by its own counter, and nothing states it."""

from collections.abc import Iterator

from harness.analysis.services.answers import METRIC, lost_to_database
from harness.analysis.services.database import Refusals, refusals
from harness.analysis.waits.stated import causes
from harness.detectors.detector import Capability, Evidence, Finding, Timeline, broke, floats, moment, slowed
from harness.model.phases import MYSQL_CONNECTIONS, MYSQL_ERRORS, MYSQL_MOST_CONNECTIONS
from harness.model.text.inert import for_output

NAME = "db-connections"
NEEDS = (Capability.SUBMISSIONS, Capability.DATABASE)
TARGETS = ("kfp",)

_SURE, _ONE_OF_SEVERAL = 0.9, 0.6  # which of several databases serves the platform is not known
_USERS = "SELECT user, COUNT(*) FROM information_schema.processlist GROUP BY user"


def detect(timeline: Timeline) -> list[Finding]:
    """Connections that were refused meanwhile, unless clients were told so in words."""
    refused, lost = refusals(timeline), lost_to_database(timeline)
    if not refused.per_s.size or any(cause.row and cause.row.name == NAME for cause in causes(timeline)):
        return []
    effect = f"{lost:.1%} of the requests to create runs were rejected"
    return [
        Finding(
            NAME,
            f"The database has no connection left: {effect if lost else 'it refused some'}",
            _SURE if refused.measured == 1 else _ONE_OF_SEVERAL,
            tuple(_evidence(timeline, refused, lost)),
            "Raise max_connections to what the API servers, the persistence agents and the metadata store may open "
            "together, or lower their pools.",
            (f'kubectl exec -n {timeline.namespace} deploy/mysql -- mysql -u root -e "{_USERS}"',),
            broke(lost) if lost else slowed(0.1),
        )
    ]


def _evidence(timeline: Timeline, refused: Refusals, lost: float) -> Iterator[Evidence]:
    most, where = float(refused.per_s.max()), f"metric = {MYSQL_ERRORS} and error = max_connections"
    exporter = for_output(" ".join(("mysqld_exporter", *filter(None, refused.databases))))
    times = f"{moment(float(refused.at_s.min()))} for the first time, {moment(float(refused.at_s.max()))} for the last"
    yield Evidence(f"{exporter} counted up to {most:.2g} refused connections a second", most, "1/s", "samples", where)
    yield Evidence(f"it counted some {times}", float(refused.at_s.min()), "s", "samples", where)
    held, limit = (floats(timeline.metric(each), "value") for each in (MYSQL_CONNECTIONS, MYSQL_MOST_CONNECTIONS))
    if refused.measured > 1:
        yield Evidence(f"{refused.measured} databases are measured: whether this is the platform's is not known")
    elif held.size and limit.size:
        text = f"at most {held.max():,.0f} of {limit.max():,.0f} connections were open when it was scraped"
        yield Evidence(text, float(held.max()), "connections", "samples", f"metric = {MYSQL_CONNECTIONS}")
    if lost:
        text = f"meanwhile {lost:.1%} of the requests to create runs were answered with an internal error"
        yield Evidence(text, 100 * lost, "%", "samples", f"metric = {METRIC}")
