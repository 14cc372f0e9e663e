"""Slow adapters, or the runtime's own parsing of their data? Confidence follows what was observed."""

import pytest

from harness.detectors.adapter_slow import detect
from harness.model.phases import NODE_CPU_CORES, SERVICE_PROBE_SECONDS
from tests.support.injected.loads import executed
from tests.support.injection.case import Case, simulated
from tests.support.timelines import Story


def moving(count: int = 60) -> Story:
    """Executions, one a second, of which each loads for 1.5 s and computes for half a second."""
    return executed(count, loading=lambda _: 1.5)


def used(story: Story, cores: float) -> Story:
    for second in range(0, 61, 5):
        story.sample(float(second), NODE_CPU_CORES, cores, node="node-0")
    return story


def probed(story: Story, seconds: float, service: str = "adapter plants") -> Story:
    for second in range(0, 61, 10):
        story.sample(float(second), SERVICE_PROBE_SECONDS, seconds, service=service)
    return story


@pytest.mark.parametrize(
    ("story", "sure", "said"),
    [
        (moving, 0.6, "was not observed"),
        (lambda: used(moving(), 0.6), 0.85, "the runtime waited"),  # computing alone takes half a core
        (lambda: used(moving(), 2.2), 0.3, "the runtime's own parsing"),  # as much again while data moves
        (lambda: probed(moving(), 0.02), 0.6, "within 20 ms"),
        (lambda: probed(moving(), 0.9), 0.85, "within 900 ms"),
        (lambda: probed(moving(), 0.9, "backend"), 0.6, "was not observed"),
    ],
)
def test_confidence_follows_the_evidence(story, sure, said, tmp_path):
    (finding,) = detect(story().timeline(tmp_path))
    assert finding.confidence == sure
    assert said in finding.evidence[-1].statement
    assert finding.title.startswith("Adapters are slow") is (sure == 0.85)
    assert "the runtime's own parsing" in finding.fix


def test_executions_that_mostly_compute_name_no_adapter(tmp_path):
    assert detect(executed(60, loading=lambda _: 0.3, computing=lambda _: 0.5).timeline(tmp_path)) == []


@pytest.mark.parametrize(("loading", "named"), [(0.45, False), (0.6, True)])
def test_adapters_are_named_where_half_of_all_time_moves_data_and_nothing_waits(loading, named, tmp_path):
    """Loading, sending 0.1 s, and computing 0.8 s."""
    found = detect(executed(60, loading=lambda _: loading, computing=lambda _: 0.8).timeline(tmp_path))
    assert bool(found) is named


@pytest.mark.parametrize(
    ("queue", "later", "named"),
    [
        (0.01, 1.0, True),  # loading takes five times as long in the end, and computing as long as ever
        (0.01, 0.2, False),
        (9.0, 1.0, False),  # others that wait for the workers may prolong loading
    ],
)
def test_adapters_that_became_slow_are_named_though_computing_takes_longer(queue, later, named, tmp_path):
    story = executed(
        120, loading=lambda seq: later if seq >= 60 else 0.2, computing=lambda _: 1.2, queue=lambda _: queue
    )
    assert bool(detect(story.timeline(tmp_path))) is named


@pytest.mark.parametrize(("injected", "named"), [(("adapter-slow@0s",), True), ((), False)])
def test_a_burst_that_waits_for_data_is_distinguished_from_one_that_waits_for_workers(injected, named):
    """The workers compute at last all the same, so that it is asked what they do while there is work for all."""
    burst = Case(injected, runs=100, over_s=1.0, profile="hetida-least-connections", schedule="burst")
    assert bool(detect(simulated(burst, 2.0, seed=0))) is named
