"""Which finding explains which, and which comes first."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from harness.detectors.detector import MOST_SLOWED, slowed
from harness.model.effects import Effects, Prediction
from harness.model.findings import DOUBT, PREVIEW, STABLE, Finding

# By finding: the findings that account for it, and the confidence that remains where those are found.
Explanations = Mapping[str, Mapping[str, float]]


_UNLIKELY = 0.2  # confidence below which a finding never comes before others, however costly
_COMPARABLE = 0.5  # of what a preview costs: a certain but minor cost is no better start
_LIKELY = 0.5  # confidence from which a finding explains others


def ranked(findings: Iterable[Finding], effects: Effects | None = None) -> tuple[Finding, ...]:
    """The findings by confidence × severity: the highest first, unlikely ones last, no preview before a stable one.

    Args:
        findings: in any order.
        effects: among causes, a fix that is predicted to save time counts by that, in place of the time that its
            finding cost. Doubts about the test keep their places: a prediction says nothing of them.
    """
    fixes = effects.fixes if effects is not None else {}
    by_cost = sorted(findings, key=_place)
    causes = iter(sorted(filter(_is_cause, by_cost), key=lambda each: _place(each, fixes.get(each.name))))
    return _stable_first(tuple(next(causes) if _is_cause(finding) else finding for finding in by_cost))


def _is_cause(finding: Finding) -> bool:
    return finding.status != DOUBT


def _place(finding: Finding, effect: Prediction | None = None) -> tuple[bool, float, str]:
    cost = finding.severity
    if effect is not None and cost <= MOST_SLOWED:  # runs that were lost are counted, not predicted
        cost = slowed(effect.saved)
    return finding.confidence < _UNLIKELY, -finding.confidence * cost, finding.name


def _stable_first(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """The findings; a cause that is no preview goes before one where it is as sure, and costs at least half as much."""
    if not findings or findings[0].status != PREVIEW:
        return findings
    least = _COMPARABLE * findings[0].severity
    stable = (each for each in findings if each.status == STABLE and each.severity >= least)
    finding = next((each for each in stable if each.confidence >= findings[0].confidence), findings[0])
    return finding, *(each for each in findings if each is not finding)


def unexplained(findings: Sequence[Finding], explained_by: Explanations) -> Iterator[Finding]:
    """The findings, less sure where likely ones explain them; without those that one of these fully explains."""
    present = {finding.name for finding in findings if finding.confidence >= _LIKELY}
    for finding in findings:
        remaining = [left for cause, left in explained_by.get(finding.name, {}).items() if cause in present]
        confidence = min([finding.confidence, *remaining])
        if confidence > 0:
            yield replace(finding, confidence=confidence)
