"""How sure a finding is, by how often findings like it were right.

A detector states a confidence from what it sees. On drawn installations it is right more or less often than that, and
`confidence_shifts` says by how much: one number for each detector, added to the log odds (the intercept of a logistic
recalibration; Cox, Biometrika 45, 1958). ``python benchmarks/detectors.py --fit`` fits it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import exp, log

from harness.model.findings import Finding, NotJudged

_LEAST = 0.5  # a finding that is rather wrong than right is none
_EDGE = 0.01  # no confidence is 0 or 1


def calibrated(
    findings: Iterable[Finding], shifts: Mapping[str, float]
) -> tuple[tuple[Finding, ...], tuple[NotJudged, ...]]:
    """The findings in their order with corrected confidence, and those that rather can't tell.

    Args:
        findings: as the detectors state them.
        shifts: by detector, in log odds; the confidence of detectors without one stays.
    """
    kept: list[Finding] = []
    unsure: list[NotJudged] = []
    for finding in findings:
        if finding.name not in shifts:
            kept.append(finding)
            continue
        confidence = shifted(finding.confidence, shifts[finding.name])
        if confidence >= _LEAST:
            kept.append(replace(finding, confidence=confidence))
        else:
            reason = f"there are signs of it, but such signs are right in only {confidence:.0%} of the cases"
            unsure.append(NotJudged(finding.name, reason))
    return tuple(kept), tuple(unsure)


def shifted(confidence: float, shift: float) -> float:
    """A confidence after a shift of its log odds."""
    return 1 / (1 + exp(-(log_odds(confidence) + shift)))


def log_odds(confidence: float) -> float:
    """The logarithm of the odds, finite for 0 and 1, too."""
    inside = min(max(confidence, _EDGE), 1 - _EDGE)
    return log(inside / (1 - inside))
