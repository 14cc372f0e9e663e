from dataclasses import replace

import pytest

from harness.detectors.ranking import ranked, unexplained
from harness.model import Evidence, Finding
from harness.model.effects import Effects, Figure, Prediction
from harness.model.findings import DOUBT


def found(name: str, confidence: float = 0.9, severity: float = 0.5) -> Finding:
    return Finding(name, name, confidence, (Evidence("observed"),), "Fix it.", (), severity)


def order(findings, explained_by):
    return ranked(unexplained([*findings], explained_by))


def names(findings) -> list[str]:
    return [finding.name for finding in findings]


def test_the_costliest_and_surest_come_first_and_equal_ones_by_name():
    findings = [found("b"), found("a"), found("unsure", 0.3), found("costly", 0.8, 0.9)]
    assert names(order(findings, {})) == ["costly", "a", "b", "unsure"]


@pytest.mark.parametrize(("present", "confidence"), [((), 0.9), (("cause",), 0.4), (("cause", "other"), 0.2)])
def test_a_finding_is_less_sure_beside_those_that_explain_it(present, confidence):
    explained_by = {"symptom": {"cause": 0.4, "other": 0.2}}
    findings = order([found("symptom"), *map(found, present)], explained_by)
    assert next(f.confidence for f in findings if f.name == "symptom") == confidence


def test_a_costly_finding_that_another_one_makes_unlikely_comes_after_it():
    findings = [found("symptom", 0.9, 0.9), found("cause", 0.9, 0.05), found("other", 0.9, 0.1)]
    assert names(order(findings, {"symptom": {"cause": 0.1}})) == ["other", "cause", "symptom"]
    assert names(order(findings, {"symptom": {"cause": 0.45}})) == ["symptom", "other", "cause"]


def test_an_explanation_never_raises_the_confidence():
    findings = order([found("symptom", 0.1), found("cause")], {"symptom": {"cause": 0.4}})
    assert [f.confidence for f in findings] == [0.9, 0.1]


def test_a_fully_explained_finding_is_dropped_and_still_explains_others():
    explained_by = {"symptom": {"cause": 0.0}, "further": {"symptom": 0.0}}
    assert names(order(map(found, ("symptom", "cause", "further")), explained_by)) == ["cause"]
    assert names(order(map(found, ("symptom", "further")), explained_by)) == ["symptom"]


@pytest.mark.parametrize(("sure", "left"), [(0.5, [0.4]), (0.49, [0.9])])
def test_a_finding_that_is_rather_wrong_than_right_explains_none(sure, left):
    findings = order([found("symptom"), found("cause", sure)], {"symptom": {"cause": 0.4}})
    assert [each.confidence for each in findings if each.name == "symptom"] == left


def test_a_finding_that_is_rather_wrong_than_right_drops_none():
    assert len(order([found("symptom"), found("cause", 0.4)], {"symptom": {"cause": 0.0}})) == 2


def expected(name: str, now_s: float, then_s: float) -> Prediction:
    return Prediction(name, {"seen_s": Figure(now_s, then_s, then_s, then_s)}, Figure(0.0, 0.0, 0.0, 0.0), "nodes")


def test_a_predicted_effect_ranks_a_finding_in_place_of_what_it_cost():
    findings = [found("costly", severity=0.4), found("helps", severity=0.1), found("measured", severity=0.15)]
    fixes = {each.name: each for each in (expected("costly", 100.0, 95.0), expected("helps", 100.0, 40.0))}
    assert names(ranked(findings)) == ["costly", "measured", "helps"]
    assert names(ranked(findings, Effects("reproduced", fixes))) == ["helps", "measured", "costly"]
    assert ranked(findings, Effects("the model does not reproduce the test", {})) == ranked(findings)


def test_a_cause_whose_fix_saves_nothing_does_not_fall_behind_a_doubt_that_it_costs_more_than():
    doubt = replace(found("too-few", 0.8, 0.2), status=DOUBT)
    fixes = {"cause": expected("cause", 100.0, 100.0), "other": expected("other", 100.0, 40.0)}
    findings = [doubt, found("cause", severity=0.4), found("other", severity=0.1)]
    assert names(ranked(findings, Effects("reproduced", fixes))) == ["other", "too-few", "cause"]
    assert names(ranked(findings[:2], Effects("reproduced", fixes))) == ["cause", "too-few"]


def test_lost_runs_count_more_than_any_time_that_is_predicted_to_be_saved():
    findings = [found("slow", severity=0.3), found("lost", severity=0.55)]
    fixes = {each.name: each for each in (expected("slow", 100.0, 1.0), expected("lost", 100.0, 100.0))}
    assert names(ranked(findings, Effects("reproduced", fixes))) == ["lost", "slow"]
