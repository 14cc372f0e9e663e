"""The platform's clock and the harness's differ: stretches between their stamps are off by that."""

from harness.analysis.timeline import Timeline
from harness.detectors.detector import RUNS, slowed
from harness.model.findings import Evidence, Finding
from harness.model.units import format_duration

NAME = "clock-skew"
NEEDS = (RUNS,)


def detect(timeline: Timeline) -> list[Finding]:
    """A run is created between its submission's sending and its answer: each bounds the difference of the clocks."""
    off = abs(timeline.skew_s)
    if not off:
        return []
    is_ahead = timeline.skew_s > 0
    return [
        Finding(
            NAME,
            f"The platform's clock is at least {format_duration(off)} {'ahead of' if is_ahead else 'behind'} "
            "the harness's",
            0.9,
            (
                Evidence(
                    f"runs carry creation stamps {format_duration(off)} "
                    f"{'after their answer was here' if is_ahead else 'before they were sent'}",
                    off, "s", "spans", "phase = run",
                ),
            ),
            "Let both follow a time server (chrony, systemd-timesyncd). This report has set the "
            "platform's stamps right by as much.",
            ("timedatectl timesync-status",),
            slowed(0.2),
        )
    ]  # fmt: skip
