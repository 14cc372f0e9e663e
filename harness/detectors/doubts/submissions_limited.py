"""The platform, or a gateway in front of it, limits the rate of submissions: 429, or 503 with Retry-After."""

from harness.detectors.detector import Capability, Evidence, Finding, Timeline, broke, floats, format_duration
from harness.detectors.error_texts import FEW_ACCEPTED, RETRY_AFTER, is_limited
from harness.model.records import Outcome

NAME = "submissions-limited"
NEEDS = (Capability.SUBMISSIONS,)

_MIN_SHARE_OF_SUBMISSIONS = 0.005  # as for validity: fewer change no figure of the report


def detect(timeline: Timeline) -> list[Finding]:
    """The rate of accepted submissions from the first refusal to the last, and what the platform asked for."""
    runs = timeline.runs
    rejected = runs[is_limited(runs)]
    share = len(rejected) / max(len(runs), 1)
    if share < _MIN_SHARE_OF_SUBMISSIONS:
        return []
    sent, accepted = floats(rejected, "sent_s"), floats(runs[runs["outcome"] == Outcome.ACCEPTED.value], "sent_s")
    span_s = float(sent.max() - sent.min())
    between = int(((accepted >= sent.min()) & (accepted <= sent.max())).sum())
    rate = between / span_s if between >= FEW_ACCEPTED and span_s > 0 else None
    statuses = " and ".join(str(status) for status in sorted(rejected["status"].unique().tolist()))
    facts = [
        Evidence(f"{share:.1%} of the submissions were refused", share, "share", "submissions", "outcome = rejected")
    ]
    if rate is not None:
        facts.append(Evidence(
            f"{between:,} were accepted in the {format_duration(span_s)} from the first refusal to the last",
            rate, "1/s", "submissions", "outcome = accepted",
        ))  # fmt: skip
    asked = rejected["error"].str.extract(RETRY_AFTER, expand=False).dropna().value_counts()
    facts += [
        Evidence(f"{count:,} times it asked to wait: Retry-After: {wait}", float(count))
        for wait, count in asked.head(3).items()
    ]
    return [
        Finding(
            NAME,
            f"The platform limits submissions{f' to about {rate:.1f}/s' if rate is not None else ''} ({statuses})",
            0.95,
            tuple(facts),
            "Raise the rate limit of the ingress, the gateway or the API server, or submit more slowly.",
            (f"kubectl get ingress -n {timeline.namespace} -o yaml | grep -i limit",),
            broke(len(rejected) / len(timeline.runs)),
        )
    ]
