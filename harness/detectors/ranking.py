"""Which finding explains which, and which comes first."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from harness.model.findings import Finding

# By finding: the findings that account for it, and the confidence that remains beside them.
Explanations = Mapping[str, Mapping[str, float]]


_UNLIKELY = 0.2  # confidence below which a finding never comes before others, however costly
_LIKELY = 0.5  # confidence from which a finding explains others


def ranked(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings by confidence × severity, the highest first, unlikely ones last."""
    return tuple(sorted(findings, key=_place))


def _place(finding: Finding) -> tuple[bool, float, str]:
    return finding.confidence < _UNLIKELY, -finding.confidence * finding.severity, finding.name


def unexplained(findings: Sequence[Finding], explained_by: Explanations) -> Iterator[Finding]:
    """The findings, less sure beside likely ones that explain them; without those that one of these fully explains."""
    present = {finding.name for finding in findings if finding.confidence >= _LIKELY}
    for finding in findings:
        remaining = [left for cause, left in explained_by.get(finding.name, {}).items() if cause in present]
        confidence = min([finding.confidence, *remaining])
        if confidence > 0:
            yield replace(finding, confidence=confidence)
