"""The load generator's own credentials were refused during the test: a token or a session has expired."""

from harness.analysis.refused_credentials import refused_credentials
from harness.detectors.detector import Capability, Evidence, Finding, Timeline, broke, moment

NAME = "credentials-refused"
NEEDS = (Capability.SUBMISSIONS,)

_FIX = (
    "Give credentials that are renewed: --token-file with a file that something rewrites, as a projected service "
    "account's token, --kubeconfig-token for what an exec plugin prints, or --cookie-file with a session that outlasts "
    "the test; pipeswarm doctor says when a token expires."
)
_LATE_FIX = (
    "Renew the token or the session some minutes before the platform refuses the old one: files are read every 30 "
    "seconds and after a 401, and a request is built up to a second before it is sent."
)
_PROXY_FIX = "Check the account in HTTPS_PROXY or HTTP_PROXY."
_PROXY = 407  # HTTP: Proxy Authentication Required


def detect(timeline: Timeline) -> list[Finding]:
    """Submissions that were answered with 401, 407, or the way to a login page."""
    credentials = refused_credentials(timeline)
    if credentials is None:
        return []
    statuses = ", ".join(f"{status} ({count:,})" for status, count in credentials.statuses.items())
    facts = [
        Evidence(
            f"answers to {credentials.count:,} submissions, the first sent {moment(credentials.from_s)}: {statuses}",
            float(credentials.count), "submissions", "submissions", "outcome = rejected",
        ),
        Evidence(f"the first answer: “{credentials.example[:200]}”"),
    ]  # fmt: skip
    if credentials.expires:
        facts.append(Evidence(f"the token of the test's start expires at {credentials.expires}"))
    if credentials.accepted_after:
        facts.append(
            Evidence(f"{credentials.accepted_after:,} later submissions were accepted, with renewed credentials")
        )
    fix = _LATE_FIX if credentials.accepted_after else _FIX
    return [
        Finding(
            NAME,
            f"The load generator's own credentials were refused, in {credentials.share:.1%} of the submissions, from "
            f"{moment(credentials.from_s)} on",
            0.95,
            tuple(facts),
            _PROXY_FIX if set(credentials.statuses) == {_PROXY} else fix,
            (),
            broke(credentials.share),
        )
    ]
