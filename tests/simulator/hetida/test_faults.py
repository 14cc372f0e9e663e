"""Each injected fault has its symptom, which is absent without it."""

import pytest

from harness.model.errors import ConfigError
from harness.simulator.faults import HETIDA_FAULTS, inject, parse_fault
from harness.simulator.hetida import Ending
from harness.simulator.hetida.execution import COMPUTING, LOADING
from harness.simulator.platform import Platform
from harness.simulator.profile.file import load_profile

SYMPTOMS = {
    "adapter-slow": lambda jobs: sum(job.duration(LOADING) for job in jobs if LOADING in job.ended),
    "adapter-errors": lambda jobs: sum(job.ending in {Ending.LOAD_FAILED, Ending.SEND_FAILED} for job in jobs),
    "slow-worker": lambda jobs: max(job.duration(COMPUTING) / job.work.compute_s for job in jobs),
    "lb-imbalance": lambda jobs: sum(job.replica == 0 for job in jobs),
}


def executed(fault, profile="hetida-pattern-3"):
    platform = Platform(load_profile(profile), 1)
    plan = parse_fault(fault)
    if plan is not None:
        inject(platform, plan)
    over = []
    for k in range(200):
        work = platform.hetida.work("Anomaly detection", ["plants"], ["plants"], {})
        platform.loop.at(k * 0.5, platform.hetida.execute, work, over.append)
    platform.loop.run(600)
    assert len(over) == 200
    return over


@pytest.fixture(scope="module")
def healthy():
    return executed("none")


def test_every_fault_has_its_symptom_tested():
    assert SYMPTOMS.keys() == HETIDA_FAULTS.keys()


@pytest.mark.parametrize("fault", sorted(HETIDA_FAULTS))
def test_a_fault_shows(fault, healthy):
    assert SYMPTOMS[fault](executed(fault)) > 2 * SYMPTOMS[fault](healthy) + 1e-9


def test_a_fault_of_hetida_designer_needs_one():
    with pytest.raises(ConfigError, match="hetida-pattern-1"):
        inject(Platform(load_profile("demo"), 1), parse_fault("adapter-slow@30s"))


@pytest.mark.parametrize("pattern", ["hetida-pattern-1", "hetida-pattern-2", "hetida-pattern-3"])
def test_every_scaling_pattern_is_a_profile(pattern):
    assert {job.ending for job in executed("none", pattern)} == {Ending.OK}
