"""Each row of the catalogue is injected, observed as a real cluster would show it, and is the first finding."""

import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from harness.analysis.waits.stated import SPOKEN_OF
from harness.detectors import detectors, diagnose, stated
from harness.reasons import Row, builtin
from harness.simulator.faults import inject, parse_fault
from harness.simulator.profile.file import load_profile
from tests.support.watched_platform import WatchedPlatform

ROWS = {row.name: row for row in builtin().rows}
DOUBTS = {each.NAME for each in detectors() if getattr(each, "DOUBT", False)}
# Detectors that have more to go by than words which say only that something failed, or that more nodes would help.
OF_GENERAL = {"failures", "api-errors", "oom", "image-pull", "store-full", "store-unreachable-from-old-nodes"}
OF_NODES = {"nodes-exhausted", "autoscaler-at-max"}
# Of the same cause, by name.
SAME = {
    "untolerated-taints": {"system-nodes-only"},  # the one taint of the observed nodes that steps do not tolerate
} | {row: {*names} for row, names in stated.EXPLAINED_ROWS.items()}


def found(row: Row) -> list[str]:
    """The causes that a report names, the first one first: half of the runs are hit."""
    with tempfile.TemporaryDirectory() as place:
        watched = WatchedPlatform(Path(place) / "runs", replace(load_profile("demo"), caching=False))
        fault = parse_fault(f"stated:{row.name}")
        assert fault is not None
        inject(watched.platform, fault)
        findings = diagnose(watched.load(4, 2.0, 330.0)).findings
    return [finding.name for finding in findings if finding.name not in DOUBTS]


def names(row: Row) -> set[str]:
    """The findings that a row may lead to."""
    others = OF_GENERAL if row.general and row.layer in SPOKEN_OF else set()
    return {row.name, *SAME.get(row.name, ()), *others, *(OF_NODES if row.nodes_help else ())}


# What the simulator makes of them is not told from something else yet: pods that fit on no node by more than room, and
# failures whose words a detector of failures reads first.
OPEN = {
    "container-create-failed", "container-status-lost", "devices-unallocatable", "existing-pods-anti-affinity",
    "gpu-memory", "host-ports-taken", "no-nodes", "pod-anti-affinity", "pod-deleted", "step-disk-full", "store-error",
    "store-unread", "volume-count-limit",
}  # fmt: skip


def _case(number: int, name: str) -> object:
    """All rows take two minutes: each third is in every run, the others with ``-m soak``."""
    marks = [pytest.mark.xfail(reason="open")] * (name in OPEN) + [pytest.mark.soak] * bool(number % 3)
    return pytest.param(name, marks=marks)


@pytest.mark.parametrize("name", [_case(number, name) for number, name in enumerate(ROWS)])
def test_what_a_component_states_is_the_first_finding(name: str) -> None:
    causes = found(ROWS[name])
    assert causes, "nothing was found"
    assert causes[0] in names(ROWS[name]), causes
