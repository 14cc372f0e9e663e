import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model.cluster import PoolPod
from harness.planning.jobs_per_node import (
    Blocked,
    NodeCapacity,
    RunRequests,
    Snapshot,
    Trial,
    Verdict,
    by_room,
    estimate,
    find_jobs_per_node,
    judge,
    lack,
    search,
)

NO_CPU = "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint {a: b}."


def test_the_estimate_is_capacity_by_requests():
    assert estimate(NodeCapacity(3.86 - 0.3, 12, 110), RunRequests(1.0, 1, 1)) == 3
    assert estimate(NodeCapacity(8, 12, 110), RunRequests(1.0, 4, 1)) == 3
    assert estimate(NodeCapacity(8, 12, 5), RunRequests(1.0, 0, 2)) == 2
    assert estimate(NodeCapacity(0.3 * 3, 1, 1), RunRequests(0.3, 0, 0)) == 3


@pytest.mark.parametrize(
    ("snapshot", "verdict"),
    [
        (Snapshot(1, 1, finished=1), None),
        (Snapshot(1, 1, finished=2), Verdict(True)),
        (Snapshot(0, 0, 0, (Blocked("train", NO_CPU, 60),)), None),  # the first node is still to come
        (Snapshot(1, 0, 0, (Blocked("train", NO_CPU, 60),)), None),  # or is coming
        (Snapshot(1, 1, 0, (Blocked("train", NO_CPU, 1),)), None),  # the scheduler needs a moment
        (Snapshot(1, 1, 0, (Blocked("train", NO_CPU, 6),)), Verdict(False, "cpu")),
        (Snapshot(2, 1, 0, (Blocked("train", NO_CPU, 1),)), Verdict(False, "cpu")),
        (Snapshot(2, 2, 2), Verdict(False, "a second node came")),
    ],
)
def test_a_snapshot_is_judged(snapshot, verdict):
    assert judge(2, snapshot) == verdict


@pytest.mark.parametrize(
    ("tainted", "driver_homes", "here"),
    [
        (False, ("n0", ""), ["train", "a-driver", "b-driver"]),  # all compete for the pool
        (True, ("", ""), ["train"]),  # a taint keeps drivers off, wherever else they wait
        (False, ("other", ""), ["train"]),  # drivers have gone elsewhere: the others will
        (False, ("other", "n0"), ["train", "b-driver"]),
    ],
)
def test_drivers_elsewhere_say_nothing_about_the_pool(tainted, driver_homes, here):
    driven = [
        PoolPod(task, "r", task, node, True, 0.1, 1.0, "" if node else NO_CPU)
        for task, node in zip(("a-driver", "b-driver"), driver_homes, strict=True)
    ]
    step = PoolPod("train", "r", "train", "", True, 1.0, 1.0, NO_CPU)
    stay, leave = by_room([step, *driven], {"n0"}, tainted=tainted)
    assert [pod.task for pod in stay] == here
    assert sorted(pod.task for pod in (*stay, *leave)) == ["a-driver", "b-driver", "train"]


def test_the_lacking_resource_is_named():
    assert lack([Blocked("train", "1 Insufficient memory, 1 Insufficient cpu.", 0)]) == "cpu, memory"
    assert lack([Blocked("train-driver", "1 Too many pods.", 0)]) == "driver pods: pods"
    assert lack([Blocked("train-driver", NO_CPU, 0), Blocked("train", NO_CPU, 0)]) == "cpu"
    assert lack([Blocked("train", "1 Insufficient nvidia.com/gpu.", 0)]) == "nvidia.com/gpu"
    assert lack([]) == ""


@given(st.integers(0, 40), st.none() | st.integers(0, 60), st.sampled_from([1, 3]))
def test_the_true_number_is_found_from_any_estimate(truth, guess, repetitions):
    def trial(jobs):
        return Trial(jobs, Verdict(jobs <= truth, "" if jobs <= truth else "memory"))

    found = find_jobs_per_node(search(40, guess, repetitions), guess, trial)
    assert found.jobs == truth
    assert found.estimate == guess
    assert found.stopped_by == ("memory" if truth < 40 else "")
    assert found.contradictions == ()
    if 0 < truth < 40:
        at_boundary = [trial.jobs for trial in found.trials]
        assert min(at_boundary.count(truth), at_boundary.count(truth + 1)) >= (repetitions + 1) // 2
