"""An idle controller looks at each workflow every ten seconds: a wait that no other setting shortens."""

from dataclasses import replace

from harness.analysis.capacity.bounds import bounds
from harness.detectors import diagnose
from tests.support.injection.case import Case, profile_of, simulated

STEADY = Case(profile="kfp-default-install", runs=40, over_s=800.0, step_s=5.0)
BURST = replace(STEADY, over_s=0.5, schedule="burst")


def test_the_advice_for_an_idle_controller_is_to_look_sooner_and_nothing_else() -> None:
    finding = diagnose(simulated(STEADY, 1.0, seed=1)).findings[0]
    assert finding.name == "controller-backlog"
    (command,) = finding.commands
    assert command.endswith("DEFAULT_REQUEUE_TIME=2s")
    assert "--qps" not in finding.fix


def test_looking_sooner_helps() -> None:
    default = profile_of(STEADY)
    sooner = replace(default, controller=replace(default.controller, requeue_s=2.0))
    named = [{each.name for each in diagnose(simulated(STEADY, 1.0, 1, of)).findings} for of in (default, sooner)]
    assert "controller-backlog" in named[0]
    assert "controller-backlog" not in named[1]


def test_an_idle_controller_limits_no_throughput() -> None:
    assert "controller" not in {bound.part for bound in bounds(simulated(BURST, 1.0, seed=1))}
