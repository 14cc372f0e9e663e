"""What pods do with what others wait for, by how much they hold and how many wait meanwhile."""

import numpy as np
import pytest

from harness.analysis.waits.holders import holders
from harness.model.phases import PULLING, REQUESTED_CPU_CORES, RUNNING
from tests.support.timelines import Story

_WAIT = (np.array([0.0]), np.array([20.0]))


def held(*pods, requests=(), place):
    """The holders' timeline: pods as (task, (phase, start, end), …)."""
    story = Story(intended=1)
    run = story.submit(0, due=0.0)
    for task, *phases in pods:
        story.pod(run, task, "node-0", *phases)
    for task, cores in requests:
        story.sample(0.0, REQUESTED_CPU_CORES, cores, task=task)
    story.run(run, 0.0, 100.0)
    return story.timeline(place)


@pytest.mark.parametrize(
    ("pods", "requests", "waits", "pulling"),
    [
        ([("step", (PULLING, 0.0, 5.0), (RUNNING, 5.0, 20.0))], (), _WAIT, 0.25),
        ([("step", (PULLING, 0.0, 5.0), (RUNNING, 5.0, 100.0))], (), _WAIT, 0.25),  # nobody waits after 20 s
        ([("step", (PULLING, 0.0, 5.0), (RUNNING, 5.0, 20.0))], (), (np.array([10.0]), np.array([20.0])), 0.0),
        # Two wait in the first half, and one in the second.
        (
            [("step", (PULLING, 0.0, 10.0), (RUNNING, 10.0, 20.0))],
            (),
            (np.array([0.0, 0.0]), np.array([20.0, 10.0])),
            2 / 3,
        ),
        # A small driver pulls while a large step runs.
        (
            [("driver", (PULLING, 0.0, 20.0)), ("step", (RUNNING, 0.0, 20.0))],
            (("driver", 0.1), ("step", 1.9)),
            _WAIT,
            0.05,
        ),
        ([("driver", (PULLING, 0.0, 20.0)), ("step", (RUNNING, 0.0, 20.0))], (), _WAIT, 0.5),
        ([("step", (PULLING, 0.0, 5.0), (RUNNING, 5.0, 100.0))], (), (np.array([0.0]), np.array([np.nan])), 0.05),
        ([("step", (PULLING, 0.0, 5.0))], (), (np.zeros(0), np.zeros(0)), 0.0),
    ],
)
def test_each_counts_by_what_it_holds_while_others_wait(pods, requests, waits, pulling, tmp_path):
    found = holders(held(*pods, requests=requests, place=tmp_path), *waits, "cpu")
    assert found.pulling == pytest.approx(pulling, abs=1e-6)
    assert found.working == pytest.approx(1 - pulling, abs=1e-6)


def test_waits_that_go_on_when_all_have_let_go_are_for_nobody(tmp_path):
    waits = np.zeros(1), np.array([np.nan])
    pods = [("step", (PULLING, 0.0, 5.0), (RUNNING, 5.0, 20.0))]
    found = holders(held(*pods, place=tmp_path), *waits, "cpu")  # the observation ends at 100 s
    assert found.pulling == pytest.approx(0.25 * 20 / 100, abs=1e-6)


def one_at_a_time(arrive, pulls, runs):
    """When pods that need the same single GPU have it, in the order in which they come."""
    begin, free = [], 0.0
    for at, pull, run in zip(arrive, pulls, runs, strict=True):
        begin.append(max(at, free))
        free = begin[-1] + pull + run
    return np.array(begin)


def queue(arrive, pulls, runs, place):
    begin = one_at_a_time(arrive, pulls, runs)
    pods = [
        (f"step-{k}", (PULLING, start, start + pull), (RUNNING, start + pull, start + pull + run))
        for k, (start, pull, run) in enumerate(zip(begin.tolist(), pulls, runs, strict=True))
    ]
    waits = begin > arrive
    found = holders(held(*pods, place=place), arrive[waits], begin[waits], "gpu")
    without = np.maximum(one_at_a_time(arrive, np.zeros(len(pulls)), runs) - arrive, 0.0)
    return found, float((begin - arrive - without).sum() / (begin - arrive).sum())


def test_what_the_first_pod_pulled_all_pods_of_its_queue_wait_for(tmp_path):
    """It pulls for 50 s before any other comes, and each computes for as long as the next one takes to come."""
    arrive, pulls = np.array([0.0, *np.arange(60.0, 260.0, 10.0)]), np.array([50.0] + [0.0] * 20)
    found, saved = queue(arrive, pulls, np.array([20.0] + [10.0] * 20), tmp_path)
    assert found.pulling == 0
    assert saved == 1.0
    assert found.queued_by_pulls == pytest.approx(saved)


def test_of_a_burst_each_wait_ends_sooner_by_the_pulls_before_it(tmp_path):
    found, saved = queue(np.zeros(12), np.full(12, 3.0), np.full(12, 9.0), tmp_path)
    assert saved == pytest.approx(0.25)
    assert found.queued_by_pulls == pytest.approx(saved)


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("every", [8.0, 11.0, 20.0])
def test_it_is_about_what_a_queue_without_pulls_would_save(seed, every, tmp_path):
    """More, where it would have ended in between; less, where the GPU is busy for a moment and nobody waits."""
    draw = np.random.default_rng(seed)
    arrive = np.cumsum(draw.exponential(every, 60))
    found, saved = queue(arrive, np.where(draw.random(60) < 0.2, 15.0, 0.0), draw.exponential(7.0, 60), tmp_path)
    assert found.queued_by_pulls == pytest.approx(saved, abs=0.21)
    assert abs(found.queued_by_pulls - saved) < abs(found.pulling - saved)


def test_a_pull_on_one_of_several_nodes_delays_less(tmp_path):
    """One of four pods pulls while another waits: the others hold three quarters."""
    pods = [("step", (PULLING, 0.0, 20.0)), *((f"step-{k}", (RUNNING, 0.0, 40.0)) for k in range(3))]
    found = holders(held(*pods, place=tmp_path), np.array([10.0]), np.array([30.0]), "gpu")
    assert found.queued_by_pulls == pytest.approx((10 + 10) / 4 / 20)


def test_a_pull_before_an_earlier_queue_does_not_count_again(tmp_path):
    pods = [("step", (PULLING, 0.0, 5.0), (RUNNING, 5.0, 100.0))]
    found = holders(held(*pods, place=tmp_path), np.array([10.0, 80.0]), np.array([20.0, 90.0]), "gpu")
    assert found.queued_by_pulls == pytest.approx(5 / 20)
