"""The platform's clock differs from the load generator's: durations between the two are off by that."""

from harness.detectors.detector import Capability, Evidence, Finding, Timeline, format_duration, slowed

NAME = "clock-skew"
NEEDS = (Capability.RUNS,)
DOUBT = True


def detect(timeline: Timeline) -> list[Finding]:
    """A run is created between the submission and the response: both timestamps bound the difference of the clocks."""
    off = abs(timeline.skew_s)
    if not off:
        return []
    is_ahead = timeline.skew_s > 0
    return [
        Finding(
            NAME,
            f"The platform's clock is at least {format_duration(off)} {'ahead of' if is_ahead else 'behind'} "
            "the load generator's",
            0.9,
            (
                Evidence(
                    f"runs have creation timestamps {format_duration(off)} "
                    f"{'after the response arrived' if is_ahead else 'before they were submitted'}",
                    off, "s", "spans", "phase = run",
                ),
            ),
            "Synchronise both clocks with a time server (chrony, systemd-timesyncd). This report has corrected the "
            "platform's timestamps by this difference.",
            ("timedatectl timesync-status",),
            slowed(0.2),
        )
    ]  # fmt: skip
