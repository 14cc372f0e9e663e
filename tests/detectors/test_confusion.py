"""A small confusion matrix, on other seeds than the large one that `python benchmarks/detectors.py` prints."""

import pytest

from benchmarks.detectors import CASES, CONTROLS, Case, judge, named, test
from harness.simulator.faults import FAULTS
from harness.simulator.hetida.faults import FAULTS as OF_HETIDA

test.__test__ = False  # it simulates one


def test_every_fault_that_can_be_planted_is_in_the_matrix():
    assert set(CASES) == set(FAULTS) | set(OF_HETIDA)


@pytest.mark.parametrize("fault", CASES)
def test_a_planted_fault_takes_effect_and_is_named_first(fault):
    verdict = judge(CASES[fault], strength=1.0, seed=1)
    assert verdict.binding == (fault,)
    assert verdict.named[0] == fault


def test_a_controller_that_lets_no_run_end_is_named():
    case = Case(("controller-backlog@0s",), runs=200, over_s=0.5)
    timeline = test(case, 4.0, seed=1)
    assert not timeline.is_over.any()
    assert named(timeline)[0] == "controller-backlog"


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("control", range(len(CONTROLS)))
def test_a_sound_platform_is_not_accused(control, seed):
    assert named(test(CONTROLS[control], 1.0, seed)) == ()
