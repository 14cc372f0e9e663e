"""A finding is stable where it was seen right on real parts or in a recorded situation, and a preview elsewhere."""

from dataclasses import replace
from pathlib import Path

import pytest

from harness.detectors import detectors, diagnose
from harness.detectors.ranking import ranked
from harness.model.findings import DOUBT, PREVIEW, STABLE, Finding
from harness.reasons import builtin
from tests.support.first_findings import FOLDERS_FIRST, SITUATIONS_FIRST
from tests.support.injected.control_plane import db
from tests.support.injected.every_fault import INJECTED

TABLE = Path(__file__).parents[2] / "benchmarks" / "results" / "real.md"


def _of_table() -> dict[str, str]:
    """By situation: what was right and first, with Prometheus."""
    rows = [line.split("|") for line in TABLE.read_text().splitlines() if line.startswith("| ")]
    return {row[1].strip(): row[3].split("`")[1] for row in rows if "`" in row[3] and "**✗**" not in row[3]}


FIRST = {
    "real": _of_table(),
    "folder": {name: first for name, first, *_ in FOLDERS_FIRST},
    "situation": {name: first for name, first, *_ in SITUATIONS_FIRST},
}
EVIDENCE = [
    *((each.NAME, text) for each in detectors() for text in getattr(each, "SEEN", ())),
    *((row.name, row.seen) for row in builtin().rows if row.seen),
]


@pytest.mark.parametrize(("name", "evidence"), EVIDENCE)
def test_what_is_stable_was_first_and_right_where_it_says(name, evidence):
    kind, _, where = evidence.partition(": ")
    assert FIRST[kind][where] == name


def test_whatever_was_first_and_right_somewhere_is_stable():
    doubts = {each.NAME for each in detectors() if getattr(each, "DOUBT", False)}
    seen = {name for firsts in FIRST.values() for name in firsts.values()} - doubts
    assert seen <= {name for name, _ in EVIDENCE}


def test_a_finding_says_that_it_is_a_preview(tmp_path):
    stable = diagnose(INJECTED["oom"]().timeline(tmp_path / "a")).findings[0]
    drawn = diagnose(db("Error 1040: Too many connections").timeline(tmp_path / "b")).findings[0]
    assert (stable.status, drawn.name, drawn.status) == (STABLE, "db-connections", PREVIEW)
    assert "preview" in drawn.sure
    assert "preview" not in stable.sure


def test_a_preview_does_not_come_before_a_stable_cause():
    drawn = Finding("x", "X", 0.9, (), "", status=PREVIEW)
    cause, doubt = Finding("oom", "O", 0.9, (), "", severity=0.3), Finding("censoring", "C", 0.8, (), "", status=DOUBT)
    assert ranked((doubt, cause, drawn)) == (cause, drawn, doubt)
    assert ranked((doubt, drawn)) == (drawn, doubt)
    assert ranked((replace(cause, confidence=0.8), drawn))[0] == drawn
    assert ranked((replace(cause, severity=0.1), drawn))[0] == drawn
