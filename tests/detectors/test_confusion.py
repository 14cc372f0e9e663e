"""A small confusion matrix, with other seeds than the large one of `python benchmarks/detectors.py`."""

import pytest

from harness.detectors import detectors, diagnose
from harness.simulator.faults import FAULTS
from harness.simulator.hetida.faults import FAULTS as OF_HETIDA
from tests.support.injection.case import Case, profile_of, simulated
from tests.support.injection.cases import CASES, CONTROLS
from tests.support.injection.fixing import FIXED
from tests.support.injection.judging import HARMLESS, Answer, judge, outcomes
from tests.support.injection.wide import draw, of_all

_SMALL = 50  # runs


def test_every_fault_that_can_be_injected_is_in_the_matrix():
    assert set(CASES) == set(FAULTS) | set(OF_HETIDA)


@pytest.mark.parametrize("fault", CASES)
def test_an_injected_fault_binds_and_is_the_first_finding(fault):
    verdict = judge(CASES[fault], strength=1.0, seed=1)
    assert verdict.binding == (fault,)
    assert verdict.first == fault


def test_a_controller_under_which_no_run_ends_is_found():
    case = Case(("controller-backlog@0s",), runs=200, over_s=0.5)
    timeline = simulated(case, 4.0, seed=1)
    assert not timeline.is_over.any()
    assert diagnose(timeline).findings[0].name == "controller-backlog"


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("control", range(len(CONTROLS)))
def test_a_healthy_platform_has_no_findings(control, seed):
    assert judge(CONTROLS[control], 1.0, seed).named == ()


def test_other_platforms_loads_and_observation_gaps_rarely_mislead():
    """The first small cases of the benchmark's random ones; the benchmark has more and lists the wrong ones."""
    drawn = [(draw(fault, number), number) for number, fault in enumerate(2 * of_all())]
    small = [(case, strength, number) for (case, strength), number in drawn if case.runs <= _SMALL]
    answers = [judge(case, strength, number).outcome for case, strength, number in small]
    assert len(answers) >= 15
    assert sum(answer in {Answer.WRONG, Answer.FALSE} for answer in answers) <= 0.1 * len(answers)
    assert {Answer.RIGHT, Answer.LARGER} <= set(answers)


def test_the_counterfactual_with_the_bottleneck_fixed_shows_whether_that_helps():
    case = Case(runs=60, over_s=60.0, profile="kfp-default-install", schedule="burst", step_s=20.0)
    verdict = judge(case, 1.0, seed=1)
    assert verdict.outcome is Answer.OTHER
    assert {each.name for each in verdict.named if each.right} >= {"nodes-exhausted"}
    here, plenty = (
        outcomes(simulated(case, 1.0, 1, profile)) for profile in (None, FIXED["nodes-exhausted"](profile_of(case)))
    )
    assert here.harm(plenty) > 1


def test_every_finding_that_can_be_right_without_its_fault_has_a_fix():
    injected_only = {
        "store-unreachable-from-old-nodes",
        "api-errors",
        "oom",
        "image-missing",
        "node-pressure",
        "db-connections",
        "db-full",
        *HARMLESS,
    }
    assert set(FIXED) <= {detector.NAME for detector in detectors()}
    assert set(CASES) - set(FIXED) == injected_only | {"adapter-errors", "slow-worker"}
