"""One bottleneck per file: Timeline to findings, each with evidence and the knob to turn."""

from harness.detectors.detector import CannotJudgeError, Detector, detectors, diagnose

__all__ = ["CannotJudgeError", "Detector", "detectors", "diagnose"]
