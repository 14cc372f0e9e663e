"""The platform's clock and the harness's differ: stretches between their stamps are off by that."""

import numpy as np

from harness.analysis.timeline import Timeline, floats
from harness.detectors.detector import RUNS, slowed
from harness.model.findings import Evidence, Finding
from harness.model.units import format_duration

NAME = "clock-skew"
NEEDS = (RUNS,)

_RESOLUTION_S = 1.0  # platforms stamp whole seconds, rounded down
_TOLERANCE_S = 0.5


def detect(timeline: Timeline) -> list[Finding]:
    """A run is created between its submission's sending and its answer: each bounds the difference of the clocks."""
    runs = timeline.runs
    sent, answered, created = (floats(runs, name) for name in ("sent_s", "answered_s", "created_s"))
    known = np.isfinite(sent) & np.isfinite(answered) & np.isfinite(created)
    if not known.any():
        return []
    low = (created - answered)[known]
    high = (created + _RESOLUTION_S - sent)[known]
    # Quantiles instead of extremes: single runs may be created late by a retry of the platform's own.
    least, most = float(np.quantile(low, 0.9)), float(np.quantile(high, 0.1))
    if least <= _TOLERANCE_S and most >= -_TOLERANCE_S:
        return []
    ahead = least > _TOLERANCE_S
    off = least if ahead else -most
    return [
        Finding(
            NAME,
            f"The platform's clock is at least {format_duration(off)} {'ahead of' if ahead else 'behind'} "
            "the harness's",
            0.9,
            (
                Evidence(
                    f"runs carry creation stamps {format_duration(off)} "
                    f"{'after their answer was here' if ahead else 'before they were sent'}",
                    off, "s", "spans", "phase = run",
                ),
            ),
            "Let both follow a time server (chrony, systemd-timesyncd). Until then the boundary between submit, "
            "controller queue and publishing is off by as much.",
            ("timedatectl timesync-status",),
            slowed(0.2),
        )
    ]  # fmt: skip
