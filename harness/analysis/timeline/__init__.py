"""The sealed run as typed frames: the one input of analysis and detectors."""

from harness.analysis.timeline.timeline import (
    TEST_INTERRUPTED,
    TEST_STARTED,
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
    "TEST_INTERRUPTED",
    "TEST_STARTED",
    "WORKER_LOST",
    "Bools",
    "Floats",
    "Ints",
    "Timeline",
    "beginnings",
    "distinct",
    "floats",
]
