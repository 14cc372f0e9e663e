"""Every detector works from the sources that docs/observation.md names, and says what it lacked."""

from functools import partial

import pytest

from harness.detectors import detectors, diagnose
from tests.support.detector_sources import (
    HEADING,
    LEVELS,
    at_level,
    changes,
    diagnosed,
    explained,
    missing,
    row,
    word,
)
from tests.support.injected.every_fault import INJECTED
from tests.support.injected.faults import FAULTS
from tests.support.injection import case as injected_case
from tests.support.injection.cases import CASES
from tests.support.reference import sources

TABLE = sources().splitlines()
DETECTORS = {each.NAME: each for each in detectors()}
# What else may be named where the cause was not seen: full nodes where nobody saw why, a store that takes nothing,
# runs that failed, did not end or took longer for no known reason, a controller that is slow for no known reason.
CONFUSED = {
    "controller-backlog", "nodes-exhausted", "store-full", "failures", "censoring", "unexplained-wait",
    "steps-end-late",
}  # fmt: skip


def test_the_page_has_a_line_for_every_detector():
    assert tuple(TABLE[: len(HEADING)]) == HEADING
    assert [line.split("`")[1] for line in TABLE[len(HEADING) :]] == sorted(DETECTORS), "run: make reference"


@pytest.mark.parametrize("name", DETECTORS)
def test_a_detector_finds_its_fault_from_the_sources_that_the_page_names_and_says_what_it_lacked(name, tmp_path):
    detector, words = DETECTORS[name], {}
    for level in changes(detector):
        diagnosis = diagnosed(INJECTED[name](), level, tmp_path / level.name)
        words[level] = word(detector, diagnosis, missed=bool(missing(detector, level)))
        assert words[level], f"the fault was neither found nor left open with {level}"
        said = {e.name: e.lacked for e in (*diagnosis.not_judged, *diagnosis.judged_with_less)}
        lacked = {each.observation for each in said.get(name, ())}
        assert lacked >= set(missing(detector, level))
        found = [each.name for each in diagnosis.findings]
        assert words[level] != "no" or found[:1] == [] or found[0] in CONFUSED
    after = explained(detector, tmp_path / "after")
    assert after, "the fault was neither found nor left open after the fact"
    assert row(detector, words, after) in TABLE, "run: make reference"


@pytest.mark.soak
@pytest.mark.parametrize("name", CASES)
def test_the_simulated_fault_is_found_from_the_same_sources(name, monkeypatch):
    detector = DETECTORS[next(finding for finding, faults in FAULTS.items() if name in faults)]
    line = next(line for line in TABLE if f"`{detector.NAME}`" in line)
    told = dict(zip(LEVELS, (cell.strip() for cell in line.split("|")[2:6]), strict=True))
    found = {}
    for level in LEVELS:
        of_level = partial(at_level, level=level, answers=CASES[name].of_hetida)
        monkeypatch.setattr(injected_case, "seen", lambda records, of_level=of_level, **_: of_level(records))
        diagnosis = diagnose(injected_case.simulated(CASES[name], 1.0, 1))
        found[level] = word(detector, diagnosis, missed=bool(missing(detector, level)))
    assert found == told
