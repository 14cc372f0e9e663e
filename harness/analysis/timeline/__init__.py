"""The sealed run as typed frames: the one input of analysis and detectors."""

from harness.analysis.timeline.columns import (
    begins,
    blocks,
    containing,
    evenly,
    looked_up,
    occurring,
    position,
    summed,
    within,
)
from harness.analysis.timeline.curves import active, integral, mean_active, merged, peak
from harness.analysis.timeline.memory import remembered
from harness.analysis.timeline.timeline import (
    CLOCK_STEPPED,
    LATE_ROWS,
    RECOVERED,
    TEST_INTERRUPTED,
    TEST_STARTED,
    TOKEN_EXPIRES,
    WORKER_LOST,
    Bools,
    Floats,
    Ints,
    Timeline,
    beginnings,
    distinct,
    floats,
)

__all__ = [
    "CLOCK_STEPPED", "LATE_ROWS", "RECOVERED", "TEST_INTERRUPTED", "TEST_STARTED", "TOKEN_EXPIRES", "WORKER_LOST",
    "Bools", "Floats", "Ints", "Timeline", "active", "beginnings", "begins", "blocks", "containing", "distinct",
    "evenly", "floats", "integral", "looked_up", "mean_active", "merged", "occurring", "peak", "position",
    "remembered", "summed", "within",
]  # fmt: skip
