"""The API server takes on runs at a fixed rate, whatever is offered: its client's token bucket (QPS and burst)."""

import numpy as np

from harness.analysis.capacity.acceptance import acceptance
from harness.analysis.timeline import Timeline, floats
from harness.detectors.detector import SUBMISSIONS, slowed
from harness.model.findings import Evidence, Finding
from harness.model.units import format_duration

NAME = "api-throttled"
NEEDS = (SUBMISSIONS,)
TARGETS = ("kfp",)

_EVEN = 0.6  # exponential gaps, as of a busy server, spread by 1.6


def detect(timeline: Timeline) -> list[Finding]:
    """While submissions wait for their answers, the answers come evenly: a bucket drips, a busy server stutters."""
    found = acceptance(timeline)
    if found is None:
        return []
    runs = timeline.runs
    service = floats(runs, "answered_s") - floats(runs, "sent_s")
    service = service[np.isfinite(service)]
    even = found.spread < _EVEN
    share = float(service.sum() / max(np.nansum(floats(runs, "over_s") - floats(runs, "due_s")), service.sum()))
    slowest = float(service.max())
    return [
        Finding(
            NAME,
            f"The API server takes on {found.rate:.1f} runs/s at most; the slowest submission waited "
            f"{format_duration(slowest)}",
            0.92 if even else 0.6,
            (
                Evidence(
                    f"{found.count:,} answers in a row came at {found.rate:.2f}/s while others waited "
                    f"(a straight line explains {found.fit:.1%})",
                    found.rate, "1/s", "submissions", "answered_at",
                ),
                Evidence(
                    f"the gaps between them vary by {found.spread:.0%}: " + (
                        "as even as a token bucket drips" if even else "uneven, as of a busy server"
                    ),
                    found.spread, "share", "submissions", "answered_at",
                ),
                Evidence(f"submissions took up to {format_duration(slowest)}", slowest, "s", "submissions"),
            ),
            "Raise the API server's client limits (CLIENTQPS and CLIENTBURST, 5 and 10 by default), or run more "
            "replicas of it: each has its own bucket. Each run costs a create, and a get and a patch when it ends.",
            (
                f"kubectl set env deployment/ml-pipeline -n {timeline.namespace} CLIENTQPS=50 CLIENTBURST=100",
                f"kubectl rollout status deployment/ml-pipeline -n {timeline.namespace}",
            ),
            slowed(max(share, 0.3)),
        )
    ]  # fmt: skip
