"""The correction of stated confidence by how often findings were right."""

import random

import pytest

from harness.detectors import diagnose
from harness.detectors.confidence import calibrated, shifted
from harness.model.findings import Finding
from tests.support.injected.nodes import overstated
from tests.support.injection.judging import Named, Truth, Verdict
from tests.support.injection.reliability import fitted, reliability


def finding(name, confidence):
    return Finding(name, f"{name} is slow", confidence, (), "fix it")


def drawn(name, stated, right, count, seed=1):
    draw = random.Random(seed)
    return [Named(name, stated, 1.0, draw.random() < right) for _ in range(count)]


def test_without_a_shift_the_stated_confidence_stays():
    findings = (finding("a", 0.3), finding("b", 0.9))
    assert calibrated(findings, {}) == (findings, ())


def test_a_shift_changes_the_odds_and_not_the_order():
    kept, unsure = calibrated((finding("a", 0.8), finding("b", 0.9)), {"a": 1.0, "b": -1.0})
    assert [each.name for each in kept] == ["a", "b"]
    assert [each.confidence for each in kept] == pytest.approx([0.9158, 0.7680], abs=1e-4)
    assert unsure == ()


def test_a_finding_that_is_rather_wrong_than_right_says_that_it_cannot_tell():
    kept, (unsure,) = calibrated((finding("a", 0.8), finding("b", 0.9)), {"a": -3.0})
    assert [each.name for each in kept] == ["b"]
    assert unsure.name == "a"
    assert "right in only 17% of the cases" in unsure.reason


@pytest.mark.parametrize(("stated", "right"), [(0.9, 0.3), (0.5, 0.9), (0.85, 0.85)])
def test_the_fit_states_what_is_right_on_cases_that_it_has_not_seen(stated, right):
    shift = fitted(drawn("a", stated, right, 400))["a"]
    held_out = drawn("a", shifted(stated, shift), right, 1000, seed=2)
    (tenth,) = reliability([Verdict((), Truth.BINDS, ("a", 1.0), tuple(held_out), frozenset())])
    assert abs(tenth.off) <= 0.05


def test_findings_are_ranked_by_their_corrected_confidence(tmp_path):
    timeline = overstated(used=0.9).timeline(tmp_path)
    first, second = diagnose(timeline, {}).findings[:2]
    assert diagnose(timeline, {first.name: -1.0}).findings[0].name == second.name


def test_few_cases_change_little():
    (many,) = fitted(drawn("a", 0.9, 0.0, 200)).values()
    (twenty,) = fitted(drawn("a", 0.9, 0.0, 20)).values()
    assert many < twenty - 1
    assert fitted(drawn("a", 0.9, 0.0, 19)) == {}
