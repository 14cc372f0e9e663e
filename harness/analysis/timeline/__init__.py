"""The sealed run as typed frames: the one input of analysis and detectors."""

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
    "CLOCK_STEPPED",
    "LATE_ROWS",
    "RECOVERED",
    "TEST_INTERRUPTED",
    "TEST_STARTED",
    "TOKEN_EXPIRES",
    "WORKER_LOST",
    "Bools",
    "Floats",
    "Ints",
    "Timeline",
    "beginnings",
    "distinct",
    "floats",
]
