"""The fixes of a test's findings as changes."""

from collections.abc import Iterable
from functools import partial

from harness.model.findings import Finding
from harness.planning.removals import REMOVALS
from harness.planning.what_if.scenario import Change, with_profile


def fixes_of(findings: Iterable[Finding]) -> dict[str, tuple[str, Change]]:
    """By finding, what is simulated in place of its fix, and that as a change; only findings that have one."""
    found: dict[str, tuple[str, Change]] = {}
    for finding in findings:
        removal = REMOVALS.get(finding.name)
        if removal is not None and finding.name not in found:
            found[finding.name] = removal[0], Change(finding.name, partial(with_profile, change=removal[1]))
    return found
