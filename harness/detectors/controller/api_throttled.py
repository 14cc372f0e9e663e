"""The API server accepts runs at a fixed rate, whatever the load: its client's token bucket (QPS and burst)."""

import numpy as np

from harness.analysis.capacity.acceptance import acceptance
from harness.analysis.waits.waits import waits_so_far
from harness.detectors.detector import Capability, Evidence, Finding, Timeline, floats, format_duration, slowed

NAME = "api-throttled"
NEEDS = (Capability.SUBMISSIONS,)
TARGETS = ("kfp",)
OVERSTATED_EARLY = True

_MIN_SHARE_OF_TIME = 0.05  # of the runs' time
_MAX_SPREAD = 0.6  # of the gaps between responses; exponential gaps, as of a busy server, vary by 1.6


def detect(timeline: Timeline) -> list[Finding]:
    """While submissions queue, responses come at an even pace: a token bucket is regular, a busy server is not."""
    plateau = acceptance(timeline)
    if plateau is None:
        return []
    runs = timeline.runs
    service = floats(runs, "answered_s") - floats(runs, "sent_s")
    service = service[np.isfinite(service)]
    even = plateau.spread < _MAX_SPREAD
    share = float(service.sum() / max(waits_so_far(timeline).total.sum(), service.sum()))
    if share < _MIN_SHARE_OF_TIME:
        return []
    slowest = float(service.max())
    return [
        Finding(
            NAME,
            f"Throughput capped at {plateau.rate:.1f} runs/s by the API server; the slowest submission took "
            f"{format_duration(slowest)}",
            0.92 if even else 0.6,
            (
                Evidence(
                    f"{plateau.count:,} consecutive responses came at {plateau.rate:.2f}/s while submissions queued "
                    f"(R² of a constant rate: {plateau.fit:.1%})",
                    plateau.rate, "1/s", "submissions", "answered_at",
                ),
                Evidence(
                    f"the gaps between responses vary by {plateau.spread:.0%}: " + (
                        "as even as from a token bucket" if even else "uneven, as from a busy server"
                    ),
                    plateau.spread, "share", "submissions", "answered_at",
                ),
                Evidence(f"submissions took up to {format_duration(slowest)}", slowest, "s", "submissions"),
            ),
            "Raise QPS and burst of the API server's Kubernetes client (CLIENTQPS and CLIENTBURST, 5 and 10 by "
            "default), or run more replicas: each has its own token bucket. A run costs one create, and one get and "
            "one patch when it ends.",
            (
                f"kubectl set env deployment/ml-pipeline -n {timeline.namespace} CLIENTQPS=50 CLIENTBURST=100",
                f"kubectl rollout status deployment/ml-pipeline -n {timeline.namespace}",
            ),
            slowed(share),
        )
    ]  # fmt: skip
