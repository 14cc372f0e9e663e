import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.planning.jobs_per_node import (
    Blocked,
    Room,
    Snapshot,
    Trial,
    Verdict,
    conclude,
    estimate,
    judge,
    lack,
    search,
)
from harness.planning.search import Tally

NO_CPU = "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint {a: b}."


def test_the_estimate_is_what_is_left_by_what_is_asked():
    assert estimate(Room(3.86 - 0.3, 12, 110), Room(1.0, 1, 1)) == 3
    assert estimate(Room(8, 12, 110), Room(1.0, 4, 1)) == 3
    assert estimate(Room(8, 12, 5), Room(1.0, 0, 2)) == 2
    assert estimate(Room(0.3 * 3, 1, 1), Room(0.3, 0, 0)) == 3


@pytest.mark.parametrize(
    ("snapshot", "verdict"),
    [
        (Snapshot(1, 1, over=1), None),
        (Snapshot(1, 1, over=2), Verdict(True)),
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


def test_what_is_lacking_is_named():
    assert lack([Blocked("train", "1 Insufficient memory, 1 Insufficient cpu.", 0)]) == "cpu, memory"
    assert lack([Blocked("train-driver", "1 Too many pods.", 0)]) == "driver pods: pods"
    assert lack([Blocked("train-driver", NO_CPU, 0), Blocked("train", NO_CPU, 0)]) == "cpu"
    assert lack([Blocked("train", "1 Insufficient nvidia.com/gpu.", 0)]) == "nvidia.com/gpu"
    assert lack([]) == ""


@given(st.integers(0, 40), st.none() | st.integers(0, 60), st.sampled_from([1, 3]))
def test_the_true_number_is_found_from_any_estimate(truth, guess, repetitions):
    plan, trials, tallies = search(40, guess, repetitions), [], {}
    while (at := plan.next(tallies)) is not None:
        fits = at + 1 <= truth
        trials.append(Trial(at + 1, Verdict(fits, "" if fits else "memory")))
        tallies[at] = tallies.get(at, Tally()).after(passed=fits)
    found = conclude(plan, trials, guess)
    assert found.jobs == truth
    assert found.stopped_by == ("memory" if truth < 40 else "")
    assert found.contradictions == ()
    if 0 < truth < 40:
        at_boundary = [trial.jobs for trial in trials]
        assert min(at_boundary.count(truth), at_boundary.count(truth + 1)) >= (repetitions + 1) // 2
