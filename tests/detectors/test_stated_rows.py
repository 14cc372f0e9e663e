"""Each row of the catalogue is injected, observed as a real cluster would show it, and is the first finding."""

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness.analysis.waits.stated import SPOKEN_OF
from harness.detectors import detectors, diagnose
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
}


def found(*rows: Row) -> list[str]:
    """The causes that a report names, the first one first: each row is stated about two runs, and two are spared."""
    runs = 2 * len(rows) + 2
    with tempfile.TemporaryDirectory() as place:
        watched = WatchedPlatform(Path(place) / "runs", replace(load_profile("demo"), caching=False))
        for row in rows:
            fault = parse_fault(f"stated:{row.name}:{2 / runs}")
            assert fault is not None
            inject(watched.platform, fault)
        findings = diagnose(watched.load(runs, 2.0, 330.0)).findings
    return [finding.name for finding in findings if finding.name not in DOUBTS]


def names(row: Row) -> set[str]:
    """The findings that a row may lead to."""
    others = OF_GENERAL if row.general and row.layer in SPOKEN_OF else set()
    return {row.name, *SAME.get(row.name, ()), *row.yields_to, *others, *(OF_NODES if row.nodes_help else ())}


def _case(number: int, name: str) -> object:
    """All rows take two minutes of CPU, so every run walks a twelfth of them, and ``-m soak`` the others."""
    marks = [pytest.mark.soak] if number % 12 else []
    return pytest.param(name, marks=marks)


@pytest.mark.parametrize("name", [_case(number, name) for number, name in enumerate(ROWS)])
def test_what_a_component_states_is_the_first_finding(name: str) -> None:
    causes = found(ROWS[name])
    assert causes, "nothing was found"
    assert causes[0] in names(ROWS[name]), causes


def _pairs() -> Iterator[object]:
    """Each row with one of another part of the catalogue; every run takes some, and ``-m soak`` the others."""
    names = [*ROWS]
    for number, one in enumerate(names):
        marks = [pytest.mark.soak] if number % 46 else []
        yield pytest.param(one, names[(number + len(names) // 2 + 1) % len(names)], marks=marks)


@pytest.mark.parametrize(("one", "other"), [*_pairs()])
def test_two_causes_that_are_stated_about_different_runs_are_the_first_findings(one: str, other: str) -> None:
    causes = found(ROWS[one], ROWS[other])
    for name in (one, other):
        assert {*causes[:3]} & names(ROWS[name]), causes
