"""Tests with planted faults, simulated and judged against the truth: what the detectors' benchmark counts."""
