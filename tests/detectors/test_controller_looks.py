"""An idle controller looks at each workflow every ten seconds: a wait that no other setting shortens."""

from dataclasses import replace

import pytest

from harness.analysis.capacity.bounds import bounds
from harness.analysis.waits.critical_path import critical_path
from harness.analysis.waits.waits import waits_so_far
from harness.detectors import diagnose
from harness.model.phases import CONTROLLER
from tests.support.injected.loads import steady
from tests.support.injection.case import Case, profile_of, simulated
from tests.support.injection.packages import Task, pipeline

STEADY = Case(profile="kfp-default-install", runs=40, over_s=800.0, step_s=5.0)
BURST = replace(STEADY, over_s=0.5, schedule="burst")


def test_the_advice_for_an_idle_controller_is_to_look_sooner_and_nothing_else() -> None:
    finding = diagnose(simulated(STEADY, 1.0, seed=1)).findings[0]
    assert finding.name == "controller-requeue"
    (command,) = finding.commands
    assert command.endswith("DEFAULT_REQUEUE_TIME=2s")
    assert "--qps" not in finding.fix


def test_looking_sooner_helps() -> None:
    default = profile_of(STEADY)
    sooner = replace(default, controller=replace(default.controller, requeue_s=2.0))
    named = [{each.name for each in diagnose(simulated(STEADY, 1.0, 1, of)).findings} for of in (default, sooner)]
    assert "controller-requeue" in named[0]
    assert not {"controller-requeue", "controller-backlog"} & named[1]


def test_an_idle_controller_limits_no_throughput() -> None:
    assert "controller" not in {bound.part for bound in bounds(simulated(BURST, 1.0, seed=1))}


def test_in_a_loop_whose_pods_overlap_a_slow_controller_shows_between_a_pod_s_end_and_the_next_one() -> None:
    """Some pod of each run always lives: only the chain of pods that its end waited for shows the delay."""
    steps = [Task("first"), Task("each", ("first",), times=30, at_once=10), Task("last", ("for-loop-each",))]
    case = Case(("controller-backlog@0s",), runs=6, over_s=60.0, step_s=10.0, package=pipeline(steps))
    timeline = simulated(case, 2.0, seed=1)
    first = diagnose(timeline).findings[0]
    assert first.name == "controller-qps"
    assert any("between a pod's end and the creation of the next one" in each.statement for each in first.evidence)
    assert critical_path(timeline).shares[CONTROLLER] > 1.5 * waits_so_far(timeline).shares()[CONTROLLER]


@pytest.mark.parametrize(("every", "named"), [(80, "controller-requeue"), (10, "controller-backlog")])
def test_waits_beyond_the_next_look_show_that_something_else_holds_the_controller_up(every, named, tmp_path) -> None:
    """Pods come 9 s after the one before, or 25 s after it in one run of so many."""
    timeline = steady(gap=lambda seq: 9.0 if seq % every else 25.0).timeline(tmp_path)
    assert named in [each.name for each in diagnose(timeline).findings]
