"""The API server rejects submissions or does not answer."""

from harness.analysis.refused_credentials import is_refused
from harness.analysis.services.answers import METRIC, lost_to_database, rejected_by_code
from harness.analysis.waits.failures import group
from harness.analysis.waits.stated import refused_for_others
from harness.detectors.detector import Capability, Evidence, Finding, Timeline, broke, floats
from harness.detectors.error_texts import is_limited
from harness.model.records import Outcome

NAME = "api-errors"
SEEN = ("real: api-restarted",)
NEEDS = (Capability.SUBMISSIONS,)

_MIN_SHARE_REJECTED = 0.005  # of the submissions: as for validity, fewer change no figure of the report
_MAX_GROUPS = 4  # messages that a finding quotes
_FIX = "Check the API server's log and its limits: memory, CPU, database, and any proxy in front of it."
# gRPC's codes for requests that are wrong in themselves.
_OF_CLIENTS = {"InvalidArgument", "NotFound", "AlreadyExists", "PermissionDenied", "Unauthenticated"}
_FIX_CLIENTS = "Check what the clients send: the codes say that most of the rejected requests are wrong in themselves."


def detect(timeline: Timeline) -> list[Finding]:
    """Rejected submissions by status and message; those of another finding belong to that one.

    Where no load was sent, the API server's own metrics show what it answered to others.
    """
    return _of_load(timeline) if timeline.plan.intended else _of_others(timeline)


def _of_load(timeline: Timeline) -> list[Finding]:
    runs = timeline.runs
    others = refused_for_others(timeline) | is_refused(runs) | is_limited(runs)
    rejected = runs[(runs["outcome"] == Outcome.REJECTED.value) & ~others]
    share = len(rejected) / max(len(runs), 1)
    if share < _MIN_SHARE_REJECTED:
        return []
    statuses = rejected["status"].astype("string").fillna("no answer")
    groups = group(
        (at, f"{status}: {error}")
        for at, status, error in zip(floats(rejected, "due_s").tolist(), statuses, rejected["error"], strict=True)
    )
    counted = ", ".join(f"{status} ({count:,})" for status, count in sorted(statuses.value_counts().items(), key=str))
    facts = [Evidence(f"statuses: {counted}", float(len(rejected)), "submissions", "submissions", "outcome = rejected")]
    facts += [Evidence(f"{g.count:,} times: “{g.example[:200]}”", float(g.count)) for g in groups[:_MAX_GROUPS]]
    return [_finding(timeline, f"The API server rejected {share:.1%} of the submissions", 0.9, facts, share)]


def _of_others(timeline: Timeline) -> list[Finding]:
    by_code = rejected_by_code(timeline)
    share = sum(by_code.values())
    if share - lost_to_database(timeline) < _MIN_SHARE_REJECTED:
        return []
    codes = ", ".join(f"{code} ({part:.1%})" for code, part in by_code.items())
    facts = [Evidence(f"gRPC codes: {codes}", 100 * share, "%", "samples", f"metric = {METRIC}")]
    title = f"KFP's API server rejected {share:.1%} of the requests to create runs"
    of_clients = sum(part for code, part in by_code.items() if code in _OF_CLIENTS)
    return [_finding(timeline, title, 0.8, facts, share, _FIX_CLIENTS if of_clients > share / 2 else _FIX)]


def _finding(
    timeline: Timeline, title: str, confidence: float, facts: list[Evidence], share: float, fix: str = _FIX
) -> Finding:
    commands = (
        f"kubectl logs -n {timeline.namespace} deployment/ml-pipeline --since=1h | grep -i error | tail -50",
        f"kubectl top pods -n {timeline.namespace}",
    )
    return Finding(NAME, title, confidence, tuple(facts), fix, commands, broke(share))
