"""The contract of every detector. A new one needs its module, its case in `tests.support.injected.every_fault`, and a row in `faults` there."""

import ast
import shlex
from functools import cache
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

import pytest

from harness.detectors import detectors, diagnose
from harness.detectors.capability import Capability
from harness.reasons import builtin
from harness.simulator.faults import FAULTS
from harness.simulator.hetida.faults import FAULTS as HETIDA_FAULTS
from tests.support.injected.every_fault import INJECTED, NAMED, plausible
from tests.support.injected.faults import FAULTS as INJECTED_BY
from tests.support.injected.faults import NOT_INJECTED
from tests.support.timelines import Story

DETECTORS = {detector.NAME: detector for detector in detectors()}
MODULES = {detector.__name__ for detector in DETECTORS.values()}
of_each = pytest.mark.parametrize("name", DETECTORS)


@pytest.fixture(scope="module")
def diagnosed(tmp_path_factory):
    """The diagnosis of a handwritten test, each made once."""
    return cache(lambda story: diagnose(story().timeline(tmp_path_factory.mktemp("run"))))


@pytest.fixture(scope="module")
def nothing_on(tmp_path_factory):
    """The diagnosis of an empty test of a platform."""
    return cache(lambda target: diagnose(Story(target=target).timeline(tmp_path_factory.mktemp("empty"))))


def test_names_are_unique():
    assert len(DETECTORS) == len(detectors())


@of_each
def test_it_declares_what_it_needs(name):
    detector = DETECTORS[name]
    assert detector.NEEDS
    assert set(detector.NEEDS) <= set(Capability)
    assert all(Capability(need).missing for need in detector.NEEDS)
    assert (detector.__doc__ or "").count(" ") > 3


@of_each
def test_faults_inject_it_or_a_reason_is_given_why_none_does(name):
    assert (name in INJECTED_BY) != bool(NOT_INJECTED.get(name))


def test_every_fault_of_the_simulator_has_one_detector():
    assert sorted(chain.from_iterable(INJECTED_BY.values())) == sorted({*FAULTS, *HETIDA_FAULTS})
    assert set(INJECTED_BY) <= set(DETECTORS)


@of_each
def test_what_explains_it_are_other_detectors_findings(name):
    explained_by = getattr(DETECTORS[name], "EXPLAINED_BY", {})
    assert set(explained_by) <= {*DETECTORS, *(row.name for row in builtin().rows)} - {name}
    assert all(0 <= confidence < 1 for confidence in explained_by.values())


@of_each
def test_it_imports_no_other_detector(name):
    tree = ast.parse(Path(find_spec(DETECTORS[name].__name__).origin).read_text())
    imported = {n.name for node in ast.walk(tree) if isinstance(node, ast.Import) for n in node.names}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            imported |= {node.module, *(f"{node.module}.{n.name}" for n in node.names)}
    assert not imported & MODULES


@of_each
def test_it_finds_nothing_in_an_empty_timeline(name, nothing_on):
    diagnosis = nothing_on(target(name))
    assert diagnosis.findings == ()
    assert name in {silent.name for silent in diagnosis.not_judged}


@of_each
def test_its_injected_case_is_the_first_finding(name, diagnosed):
    findings = diagnosed(INJECTED[name]).findings
    assert findings, "nothing was found"
    assert findings[0].name == NAMED.get(name, name), [(f.name, f.confidence, f.severity, f.title) for f in findings]


@of_each
def test_every_finding_can_be_looked_up_and_acted_on(name, diagnosed):
    for finding in diagnosed(INJECTED[name]).findings:
        assert finding.evidence
        assert [each for each in finding.evidence if not plausible(each)] == []
        assert finding.fix.endswith(".")
        assert 0 < finding.confidence <= 1
        assert 0 < finding.severity <= 1
        assert not finding.title.endswith(".")
        for command in finding.commands:
            assert shlex.split(command, comments=True)
            assert "<" not in command
        tables = {evidence.table for evidence in finding.evidence} - {""}
        assert tables <= {"submissions", "spans", "samples", "events", "nodes"}


def test_every_injected_case_has_a_detector():
    assert set(INJECTED) == set(DETECTORS)


def target(name: str) -> str:
    """A platform that can have this bottleneck."""
    detector = DETECTORS[name]
    service = Capability.EXECUTIONS in detector.NEEDS
    return getattr(detector, "TARGETS", ("hetida" if service else "kfp",))[0]
