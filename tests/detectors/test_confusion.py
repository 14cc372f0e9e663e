"""A small confusion matrix, with other seeds than the large one of `python benchmarks/detectors.py`."""

import pytest

from harness.detectors import detectors, diagnose
from harness.model.phases import PULLING, RUNNING
from harness.simulator.faults import FAULTS
from harness.simulator.hetida.faults import FAULTS as OF_HETIDA
from tests.support.injection.case import Case, profile_of, simulated
from tests.support.injection.cases import CASES, CONTROLS
from tests.support.injection.causes import FIXED
from tests.support.injection.installations import Installation, draw
from tests.support.injection.judging import (
    HARMLESS,
    MORE_PRECISE,
    Answer,
    Truth,
    bottlenecks,
    gains,
    judge,
    judged,
    largest,
    outcomes,
)
from tests.support.timelines import Story

_FEW = 4
# Where the nodes' CPU is not seen, a runtime that parses what it gets looks like an adapter that sends it slowly.
ALIKE = {"adapter-slow": "runtime-saturated"}


def test_every_fault_that_can_be_injected_is_in_the_matrix():
    assert set(CASES) == set(FAULTS) | set(OF_HETIDA)


@pytest.mark.parametrize("fault", CASES)
def test_an_injected_fault_binds_and_is_the_first_finding(fault):
    case = CASES[fault]
    first, *others = diagnose(simulated(case, 1.0, seed=1)).findings
    if first.name == ALIKE.get(fault):
        first = others[0]
    assert fault in {first.name, MORE_PRECISE.get(first.name)}
    gained = gains(Installation(case, profile_of(case), 1.0, 1))([fault])
    assert gained > 0.5 or fault in {*HARMLESS, "clock-skew"}


@pytest.mark.parametrize(("since", "lost"), [(10.0, 0.5), (995.0, 0.0)])
def test_a_run_that_waits_for_an_image_far_longer_than_others_is_lost(since, lost):
    story = Story(intended=2)
    for seq, stretches in enumerate([((PULLING, 1.0, 5.0), (RUNNING, 5.0, 1000.0)), ((PULLING, since, None),)]):
        run = story.submit(seq)
        story.pod(run, "train", "node-0", *stretches)
        story.run(run, 0.0, 1000.0 if not seq else None)
    assert outcomes(story.records).lost == lost


def test_a_controller_under_which_no_run_ends_is_found():
    case = Case(("controller-backlog@0s",), runs=200, over_s=0.5)
    timeline = simulated(case, 4.0, seed=1)
    assert not timeline.is_over.any()
    assert diagnose(timeline).findings[0].name == "controller-qps"


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("control", range(len(CONTROLS)))
def test_a_healthy_platform_has_no_findings(control, seed):
    assert not bottlenecks(diagnose(simulated(CONTROLS[control], 1.0, seed)).findings)


def test_drawn_installations_get_a_right_answer_more_often_than_a_wrong_one():
    """A few of the benchmark's, of a seed of their own; `benchmarks/detectors.py` says how often in hundreds."""
    answers = [judged(draw(0, number)).answer for number in range(_FEW)]
    assert sum(each in {Answer.RIGHT, Answer.QUIET} for each in answers) >= _FEW / 2
    assert Answer.RIGHT in answers


def test_the_counterfactual_with_the_bottleneck_fixed_shows_whether_that_helps():
    verdict = judge(Case(runs=60, over_s=60.0, profile="kfp-default-install", schedule="burst", step_s=20.0), 1.0, 1)
    assert verdict.truth is Truth.BINDS
    assert {each.name for each in verdict.named if each.right} >= {"nodes-exhausted"}


def test_of_removals_that_are_as_good_the_injected_one_is_the_cause():
    """Four times the replicas make up for a slow one: its finding alone can be right, and says what it lacks."""
    verdict = judged(draw(660078, 423))
    assert verdict.best[0] == "slow-worker"
    assert verdict.answer is Answer.UNJUDGED


def test_the_largest_single_gain_is_found_without_trying_every_cause():
    alone = {"a": 0.1, "b": 2.0, "c": 0.3, "d": 0.0, "e": 1.9, "f": 0.0, "g": 0.0, "h": 0.2}
    tried: list[frozenset[str]] = []

    def gain(names):
        tried.append(frozenset(names))
        return max(alone[each] for each in names)

    assert largest([*alone], gain) == ("b", 2.0)
    assert len(tried) < len(alone)


def test_every_finding_that_can_be_right_without_its_fault_has_a_fix():
    injected_only = {
        "store-unreachable-from-old-nodes",
        "api-errors",
        "oom",
        "image-missing",
        "node-pressure",
        "db-connections",
        "db-full",
        "clock-skew",
        *HARMLESS,
    }
    assert set(FIXED) - {"runtime-saturated"} <= {detector.NAME for detector in detectors()}
    assert set(CASES) - set(FIXED) == injected_only | {"adapter-errors", "slow-worker"}
