from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from harness.analysis.capacity import recorded as module
from harness.analysis.capacity.bounds import ADAPTERS
from harness.analysis.capacity.model import Observation
from harness.analysis.capacity.recorded import eviction_factor, recorded
from harness.analysis.services.service_replicas import ServiceReplicas
from harness.model import Submission
from harness.model.phases import FAILED, RUNNING, SCHEDULING, SUCCEEDED, UNSCHEDULABLE
from tests.support.injected.loads import executed
from tests.support.timelines import Story, at, burst


def test_evictions_repeat_work_as_in_simulation():
    """Oracle: steps of 1 h on nodes that are taken back at random, 0.5 times an hour."""
    random = np.random.default_rng(3)
    total = 0.0
    for _ in range(20_000):
        while (until := random.exponential(7200.0)) < 3600.0:
            total += until
        total += 3600.0
    assert eviction_factor(3600.0, 0.5, 0.0) == pytest.approx(total / 20_000 / 3600.0, rel=0.03)
    assert eviction_factor(3600.0, 0.0, 180.0) == 1.0
    assert eviction_factor(1.0, 0.5, 180.0) == pytest.approx(1 + 0.5 * 180 / 3600, rel=1e-3)


def test_a_recorded_burst_is_an_observation(tmp_path):
    story = burst(200, pool=2)
    test = recorded(story.timeline(tmp_path))
    (observation,) = test.observations
    assert (observation.runs, observation.nodes) == (200, 2)
    assert observation.duration_s == pytest.approx(
        max(r.ended_at or 0 for r in story.records if getattr(r, "phase", "") == "run") / 1e9 - 1_790_000_000, abs=1
    )
    assert test.step_s == pytest.approx(3.0)
    assert test.price is None


def waves(failed: int = 0, *, nodes: int = 2, last_due: float = 0.0, **of_nodes: object) -> Story:
    """Ten runs at once, one after the other on each node for 20 s, which end after 100 s on two nodes."""
    story = Story(intended=10)
    for k in range(nodes):
        story.node(f"n{k}", -20, -10, **of_nodes)
    for seq in range(10):
        run, wave = story.submit(seq, due=last_due if seq == 9 else 0.0), seq // 2
        begun, over = 20.0 * wave, 20.0 * (wave + 1)
        story.pod(run, "quick", f"n{seq % 2}", (SCHEDULING, begun, begun + 1), (RUNNING, begun + 1, begun + 4))
        story.pod(run, "slow", f"n{seq % 2}", (RUNNING, begun + 4, over - seq / 10))
        story.run(run, 0, over, FAILED if seq < failed else SUCCEEDED)
    return story


def test_the_longest_task_is_what_an_eviction_repeats(tmp_path):
    story = waves()
    story.pod(story.submit(10), "unended", "n0", (RUNNING, 0, None))
    assert recorded(story.timeline(tmp_path)).step_s == pytest.approx(16 - 0.45)  # the median of 16 s to 15.1 s
    assert recorded(Story(intended=1).timeline(tmp_path / "none")).step_s is None


@pytest.mark.parametrize(("prices", "mean"), [((0.2, 0.4), 0.3), ((0.2, None), None), ((None, None), None)])
def test_the_price_is_known_where_all_nodes_have_one(prices, mean, tmp_path):
    story = waves(nodes=0)
    for k, price in enumerate(prices):
        story.node(f"n{k}", -20, -10, price=price)
    assert recorded(story.timeline(tmp_path)).price == (mean and pytest.approx(mean))


@pytest.mark.parametrize(
    ("message", "lacks"),
    [("0/2 nodes are available: 2 Insufficient cpu.", "cpu"), ("0/2 nodes are available: 2 Too many pods.", "pods")],
)
def test_what_the_scheduler_lacked_is_named_as_a_resource(message, lacks, tmp_path):
    story = waves()
    story.pod("run-0009", "quick", None, (UNSCHEDULABLE, 0, 80))
    story.event(5, "Pod", "run-0009-quick", "FailedScheduling", message, run="run-0009")
    assert recorded(story.timeline(tmp_path)).lacks == lacks
    assert recorded(waves().timeline(tmp_path / "none")).lacks == ""


def test_a_burst_on_a_constant_number_of_nodes_is_one_observation(tmp_path):
    test = recorded(waves().timeline(tmp_path))
    assert test.observations == (Observation(10, 2.0, pytest.approx(100.0, abs=0.1)),)
    assert test.warnings == ()
    assert (test.unit, test.workers_each, [cap.part for cap in test.caps]) == ("node", 0, ["parallelism"])


@pytest.mark.parametrize(
    ("story", "warning"),
    [
        (waves(10), "the test shows nothing about capacity: no run succeeded"),
        (waves(nodes=0), "the test shows nothing about capacity: no node was observed"),
        (waves(last_due=60.0), "the test shows nothing about capacity: its arrivals set its duration; use a burst"),
        (
            waves(virtual=True),
            "the test shows nothing about capacity: all pods ran on virtual nodes, which have no size to fit to",
        ),
    ],
)
def test_a_test_that_shows_nothing_says_why(story, warning, tmp_path):
    test = recorded(story.timeline(tmp_path))
    assert test.observations == ()
    assert test.warnings[-1].startswith(warning)


def test_arrivals_until_the_middle_leave_the_platform_to_set_the_duration(tmp_path):
    assert len(recorded(waves(last_due=49.0).timeline(tmp_path)).observations) == 1


def test_only_runs_that_succeeded_count(tmp_path):
    test = recorded(waves(2).timeline(tmp_path))
    assert [each.runs for each in test.observations] == [8]
    assert "2 of 10 runs failed: only successful runs count" in test.warnings


def test_nodes_that_vary_without_steady_stretches_count_by_their_mean(tmp_path):
    story = waves(nodes=1)
    story.node("n1", 40, 50)
    test = recorded(story.timeline(tmp_path))
    (observation,) = test.observations
    assert observation.nodes == pytest.approx(1.5, abs=0.05)
    assert test.warnings == ("the nodes varied from 1 to 2: counted as 1.5",)


def test_work_on_virtual_nodes_is_not_the_machines(tmp_path):
    story = waves(nodes=1)
    story.node("n1", -20, -10, virtual=True)
    test = recorded(story.timeline(tmp_path))
    (observation,) = test.observations
    assert observation.runs == pytest.approx(5.0, rel=0.02)
    assert observation.nodes == 1.0
    assert (
        "of the pods' time was on virtual nodes, which are no machines: 50% of the work was done by"
        in test.warnings[-1]
    )


@pytest.mark.parametrize("limited", [False, True])
def test_a_service_is_observed_by_its_replicas(limited, tmp_path, monkeypatch):
    of_adapters = SimpleNamespace(part=ADAPTERS)
    monkeypatch.setattr(module, "bounds", lambda _: [SimpleNamespace(part="nodes"), *[of_adapters] * limited])
    story = executed(30)
    at_once = {"due_at": at(0), "sent_at": at(0)}
    story.records = [replace(each, **at_once) if isinstance(each, Submission) else each for each in story.records]
    test = recorded(story.timeline(tmp_path))
    (observation,) = test.observations
    assert (observation.runs, observation.nodes, test.unit) == (30, 3, "replica")
    assert observation.duration_s == pytest.approx(29 + 0.01 + 0.7 * 1.03 + 0.1, abs=0.01)
    assert test.warnings[0] == "a replica stands for one with as many workers and cores as those tested"
    assert any("loaded and sent data for longer" in each for each in test.warnings) is limited


def test_a_service_that_follows_its_arrivals_shows_nothing(tmp_path):
    test = recorded(executed(30).timeline(tmp_path))
    assert test.observations == ()
    assert test.warnings[-1].endswith("its arrivals set its duration; use a burst")


def test_kubernetes_shows_replicas_and_their_workers(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "service_replicas", lambda _: ServiceReplicas(("a", "b"), (4, 4)))
    test = recorded(waves().timeline(tmp_path))
    assert [each.nodes for each in test.observations] == [2]
    assert (test.unit, test.workers_each) == ("replica", 4)


@pytest.mark.parametrize(("last_due", "whole"), [(0.0, [(10.0, 1.5, False)]), (60.0, [])])
def test_stretches_with_constant_nodes_count_each(last_due, whole, tmp_path, monkeypatch):
    """Where arrivals set the duration, only they do."""
    stretches = SimpleNamespace(
        nodes=np.array([1.0, 2.0]), per_hour=np.array([180.0, 360.0]), start_s=np.array([5.0, 60.0]),
        end_s=np.array([45.0, 100.0]),
    )  # fmt: skip
    monkeypatch.setattr(module, "steady_state", lambda _: stretches)
    story = waves(nodes=1, last_due=last_due)
    story.node("n1", 40, 50)
    test = recorded(story.timeline(tmp_path))
    found = [(each.runs, each.nodes, each.steady) for each in test.observations]
    assert found == [
        (pytest.approx(2.0), 1.0, True), (pytest.approx(4.0), 2.0, True),
        *[(runs, pytest.approx(nodes, abs=0.05), steady) for runs, nodes, steady in whole],
    ]  # fmt: skip
    assert [each.duration_s for each in test.observations[:2]] == [40.0, 40.0]
    assert test.warnings == ()
