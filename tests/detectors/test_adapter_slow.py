"""Slow adapters, or the runtime's own parsing of their data? Confidence follows what was observed."""

import re
from dataclasses import replace

import numpy as np
import pytest

from harness.analysis.services.saturation import Saturation
from harness.detectors import diagnose
from harness.detectors.services import adapter_slow
from harness.detectors.services.adapter_slow import detect
from harness.model.phases import NODE_CPU_CORES, SERVICE_PROBE_SECONDS
from tests.support.injected.loads import executed
from tests.support.injection.case import Case, simulated
from tests.support.injection.installations import draw
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
    assert detect(executed(60, loading=lambda _: 0.15, computing=lambda _: 0.5).timeline(tmp_path)) == []


@pytest.mark.parametrize(("loading", "named"), [(0.3, False), (0.35, True)])
def test_adapters_are_named_where_more_than_a_third_of_all_time_moves_data_and_nothing_waits(loading, named, tmp_path):
    """Loading, sending 0.1 s, and computing 0.8 s."""
    found = detect(executed(60, loading=lambda _: loading, computing=lambda _: 0.8).timeline(tmp_path))
    assert bool(found) is named


@pytest.mark.parametrize(
    ("queue", "later", "named"),
    [
        (0.01, 1.0, True),  # loading takes five times as long in the end, and computing as long as ever
        (0.01, 0.45, True),  # a quarter of the time is enough
        (0.01, 0.2, False),
        (9.0, 1.0, False),  # others that wait for the workers may prolong loading
    ],
)
def test_adapters_that_became_slow_are_named_though_computing_takes_longer(queue, later, named, tmp_path):
    story = executed(
        120, loading=lambda seq: later if seq >= 60 else 0.2, computing=lambda _: 1.2, queue=lambda _: queue
    )
    assert bool(detect(story.timeline(tmp_path))) is named


# Overloaded workers, which compute for half of their time: without loads, the wait would shrink to a half.
_FULL = Saturation(waiting=0.7, moving=0.2, computing=0.5, covered=1.0, workers=4, most=4, queued=0.5)


@pytest.mark.parametrize(
    ("workers", "sure", "saved"),
    [
        (_FULL, 0.4, 0.8 * 0.55),  # nothing shows how long loads take that others interrupt
        (replace(_FULL, computing=0.6), None, None),  # without loads, less than half of the time would be saved
        (replace(_FULL, computing=0.3), 0.6, 0.69),  # they rarely compute: the loads fill them
        (replace(_FULL, moving=0.4, waiting=0.5), 0.6, 0.65),  # whatever else there is, loads take that long
    ],
)
def test_faster_loads_are_a_second_remedy_of_overloaded_workers(workers, sure, saved, tmp_path, monkeypatch):
    monkeypatch.setattr(adapter_slow, "saturation", lambda _: workers)
    found = detect(executed(60, loading=lambda _: 3.0, queue=lambda _: 3.0).timeline(tmp_path))
    assert [each.confidence for each in found] == [sure] * (sure is not None)
    if saved is not None:
        assert found[0].severity == pytest.approx(0.5 * saved)


@pytest.mark.parametrize(("queued", "named"), [(0.01, True), (0.1, False)])
def test_waits_that_only_long_loads_suggest_leave_the_loads_as_the_cause(queued, named, tmp_path, monkeypatch):
    workers = Saturation(waiting=0.2, moving=0.25, computing=0.7, covered=1.0, workers=4, most=4, queued=queued)
    monkeypatch.setattr(adapter_slow, "saturation", lambda _: workers)
    found = detect(executed(60, loading=lambda _: 0.5, computing=lambda _: 0.8).timeline(tmp_path))
    assert bool(found) is named


@pytest.mark.parametrize(("injected", "named"), [(("adapter-slow@0s",), True), ((), False)])
def test_a_burst_that_waits_for_data_is_distinguished_from_one_that_waits_for_workers(injected, named):
    """The workers compute at last all the same, so that it is asked what they do while there is work for all."""
    burst = Case(injected, runs=100, over_s=1.0, profile="hetida-least-connections", schedule="burst")
    assert bool(detect(simulated(burst, 2.0, seed=0))) is named


@pytest.mark.parametrize(("seed", "number"), [(660084, 261), (660083, 343)])
def test_where_executions_wait_for_cores_quicker_loads_save_no_wait(seed, number):
    """12 workers on 2 cores, and 30 on 12: four times the nodes spare most of the time, quicker adapters less."""
    drawn = draw(seed, number)
    found = diagnose(simulated(drawn.case, drawn.strength, drawn.seed, drawn.profile)).findings
    assert [each.name for each in found] == ["runtime-saturated", "adapter-slow"]
    assert found[1].severity < 0.2


@pytest.mark.parametrize(("since", "named"), [(4, True), (30, True), (60, False)])
def test_loads_that_take_longer_from_some_execution_on_are_named_wherever_that_is(since, named, tmp_path):
    """Then they take a quarter of the time, which is little for adapters that always take as long."""
    durations = np.random.default_rng(2).lognormal(0.0, 0.5, 60)
    story = executed(60, loading=lambda seq: durations[seq] * (0.7 if seq >= since else 0.1), computing=lambda _: 2.0)
    found = detect(story.timeline(tmp_path))
    assert bool(found) is named
    said = [
        re.match(r"after (\d+) executions, loading took", fact.statement) for each in found for fact in each.evidence
    ]
    assert [int(each[1]) for each in said if each] == [pytest.approx(since, abs=2)] * named
