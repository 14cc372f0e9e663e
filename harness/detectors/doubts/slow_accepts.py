"""Connections to the platform open slowly: what accepts them has a full queue, or packets are lost on the way."""

from harness.analysis.waits.waits import waits_so_far
from harness.detectors.detector import Capability, Evidence, Finding, Timeline, counted, floats, format_duration, slowed
from harness.model.phases import CONNECT_S

NAME = "slow-accepts"
NEEDS = (Capability.SUBMISSIONS,)

_MIN_SHARE_OF_SUBMISSIONS = 0.01  # of the submissions; single packets are lost on any way


def detect(timeline: Timeline) -> list[Finding]:
    """TCP connections whose first SYN got no answer: they take a second or more, whatever the API does."""
    samples = timeline.metric(CONNECT_S)
    share = len(samples) / max(len(timeline.runs), 1)
    if share < _MIN_SHARE_OF_SUBMISSIONS:
        return []
    taken = floats(samples, "value")
    longest = float(taken.max())
    total = float(waits_so_far(timeline).total.sum())
    return [
        Finding(
            NAME,
            f"The platform accepts connections slowly: they took up to {format_duration(longest)} to open",
            0.8,
            (
                Evidence(
                    f"the first SYN of {counted(len(samples), 'connection')} got no answer, for "
                    f"{len(timeline.runs):,} submissions",
                    float(len(samples)), "connections", "samples", f"metric = {CONNECT_S}",
                ),
            ),
            "Raise the listen backlog of the API server, ingress or proxy that accepts them (and net.core.somaxconn, "
            "which limits it), or run more replicas. If TcpExtListenOverflows does not grow there, packets are lost.",
            ("nstat -az TcpExtListenOverflows TcpExtListenDrops",),
            slowed(float(taken.sum()) / max(total, float(taken.sum()))),
        )
    ]  # fmt: skip
