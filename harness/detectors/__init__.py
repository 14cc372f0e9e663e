"""One bottleneck per file: a timeline in, findings out, each with its evidence and the fix."""

from harness.detectors.detector import CannotJudgeError, Detector
from harness.detectors.diagnosis import detectors, diagnose

__all__ = ["CannotJudgeError", "Detector", "detectors", "diagnose"]
