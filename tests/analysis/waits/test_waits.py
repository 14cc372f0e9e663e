import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.analysis.waits.waits import Waits, coverage, segments, waits, waits_so_far
from harness.model.phases import (
    CONTROLLER,
    DISPATCH,
    POD_PHASES,
    PRECEDENCE,
    PROVISIONING,
    PUBLISHING,
    PULLING,
    RUN_PHASES,
    RUNNING,
    SCHEDULING,
    STARTING,
    STORING,
    SUBMIT,
    UNKNOWN,
    UNSCHEDULABLE,
)
from tests.support.timelines import Story, burst


def phases_of(story, tmp_path, row=0):
    split = waits(story.timeline(tmp_path))
    return {name: pytest.approx(split.of(name)[row]) for name in RUN_PHASES if split.of(name)[row]}


def test_a_hand_worked_run_is_split_at_its_boundaries(tmp_path):
    story = Story(intended=1)
    run = story.submit(0, due=1.0, lag=0.5, service=0.5)
    story.pod(run, "a", "n", (UNSCHEDULABLE, 3.0, 5.0), (STARTING, 5.0, 6.0), (RUNNING, 6.0, 9.0))
    story.pod(run, "b", "n", (PULLING, 10.0, 11.0), (RUNNING, 11.0, 14.0))
    story.run(run, 2.0, 16.0)
    assert phases_of(story, tmp_path) == {
        DISPATCH: 0.5, SUBMIT: 0.5, CONTROLLER: 2.0, UNSCHEDULABLE: 2.0, STARTING: 1.0, PULLING: 1.0, RUNNING: 6.0,
        PUBLISHING: 2.0,
    }  # fmt: skip


def test_a_run_is_running_while_one_of_its_pods_is(tmp_path):
    story = Story(intended=1)
    run = story.submit(0, lag=0.0, service=0.0)
    story.pod(run, "a", "n", (RUNNING, 0.0, 10.0))
    story.pod(run, "b", None, (UNSCHEDULABLE, 2.0, 12.0))
    story.run(run, 0.0, 12.0)
    assert phases_of(story, tmp_path) == {RUNNING: 10.0, UNSCHEDULABLE: 2.0}


def test_a_run_is_not_storing_while_another_of_its_pods_runs(tmp_path):
    story = Story(intended=1)
    run = story.submit(0, lag=0.0, service=0.0)
    story.pod(run, "a", "n", (RUNNING, 0.0, 4.0), (STORING, 4.0, 12.0))
    story.pod(run, "b", "n", (RUNNING, 2.0, 9.0))
    story.run(run, 0.0, 12.0)
    assert phases_of(story, tmp_path) == {RUNNING: 9.0, STORING: 3.0}


def test_a_timestamp_before_the_answer_gives_a_negative_wait(tmp_path):
    story = Story(intended=1)
    run = story.submit(0, lag=0.0, service=0.9)
    story.pod(run, "a", "n", (RUNNING, 0.0, 3.0))  # the cluster stamps whole seconds
    story.run(run, 0.0, 2.0)  # and so does the platform
    assert phases_of(story, tmp_path) == {SUBMIT: 0.9, CONTROLLER: -0.9, RUNNING: 3.0, PUBLISHING: -1.0}


def test_a_run_that_by_its_stamp_ended_before_it_was_sent_ended_with_its_answer(tmp_path):
    story = Story(intended=1)
    story.run(story.submit(0, due=10.7, lag=0.01, service=0.02), 10.0, 10.0)
    assert waits(story.timeline(tmp_path)).total == pytest.approx([0.03])


def test_without_pods_the_time_is_unknown(tmp_path):
    story = Story(intended=1)
    story.run(story.submit(0, lag=0.0, service=1.0), 0.0, 7.0)
    assert phases_of(story, tmp_path) == {SUBMIT: 1.0, UNKNOWN: 6.0}


def test_unschedulable_counts_as_provisioning_while_a_node_is_on_its_way(tmp_path):
    story = Story(intended=1)
    run = story.submit(0, lag=0.0, service=0.0)
    message = "pod triggered scale-up: [{pool-a 1->2 (max: 5)}]"
    story.event(12.0, "Pod", "p", "TriggeredScaleUp", message)
    story.event(12.4, "Pod", "q", "TriggeredScaleUp", message)  # the same decision, told to another pod
    story.node("new", created=50.0, ready=60.0)
    story.pod(run, "a", "new", (UNSCHEDULABLE, 2.0, 61.0), (RUNNING, 61.0, 62.0))
    story.run(run, 0.0, 62.0)
    assert phases_of(story, tmp_path) == {CONTROLLER: 2.0, UNSCHEDULABLE: 11.0, PROVISIONING: 48.0, RUNNING: 1.0}


def test_a_pod_that_never_ended_ends_with_its_run(tmp_path):
    story = Story(intended=1)
    run = story.submit(0, lag=0.0, service=0.0)
    story.pod(run, "a", "n", (RUNNING, 0.0, None))
    story.run(run, 0.0, 8.0)
    assert phases_of(story, tmp_path) == {RUNNING: 8.0}


def test_an_interval_that_ends_before_it_starts_is_counted_and_left_out(tmp_path):
    story = Story(intended=1)
    run = story.submit(0, lag=0.0, service=0.0)
    story.pod(run, "a", "n", (STARTING, 5.0, 4.0), (RUNNING, 5.0, 6.0))
    story.run(run, 0.0, 6.0)
    split = waits(story.timeline(tmp_path))
    assert split.reversed == 1
    assert split.seconds.sum() == pytest.approx(6.0)


def test_unfinished_runs_are_not_split(tmp_path):
    story = Story(intended=2)
    story.submit(0)
    story.run(story.submit(1), 0.0, 5.0)
    assert waits(story.timeline(tmp_path)).row.tolist() == [1]


def test_waits_so_far_include_unfinished_runs(tmp_path):
    story = Story(intended=3)
    working, waiting, podless = (story.submit(k, lag=0.0, service=1.0) for k in range(3))
    story.pod(working, "a", "n", (STARTING, 2.0, 3.0), (STORING, 3.0, None))
    story.pod(waiting, "a", "n", (RUNNING, 1.0, 4.0))
    for run in (working, waiting, podless):
        story.run(run, 0.0, None)
    story.event(20.0, "Test", "test", "DrainTimedOut")
    split = waits_so_far(story.timeline(tmp_path))
    assert split.total == pytest.approx([20.0] * 3)
    assert split.seconds.sum(axis=1) == pytest.approx(split.total)
    assert split.of(STORING).tolist() == pytest.approx([17.0, 0.0, 0.0])
    assert split.of(CONTROLLER).tolist() == pytest.approx([1.0, 16.0, 19.0])
    assert split.of(PUBLISHING).tolist() == [0.0] * 3


STRETCHES = st.lists(
    st.tuples(st.integers(0, 11), st.sampled_from(POD_PHASES), st.integers(0, 40), st.integers(0, 20)), max_size=75
)


@settings(max_examples=20, deadline=None)  # of twelve runs each: most of the time goes into writing and reading them
@given(STRETCHES, st.lists(st.integers(0, 60), min_size=12, max_size=12))
def test_phases_add_up_and_agree_with_asking_every_second(tmp_path_factory, stretches, ends):
    story = Story(intended=12)
    runs = [story.submit(k, lag=0.0, service=0.0) for k in range(12)]
    for k, end in enumerate(ends):
        story.run(runs[k], 0.0, float(end))
    for number, (k, phase, start, length) in enumerate(stretches):
        story.pod(runs[k], f"t{number}", "n", (phase, float(start), float(start + length)))
    split = waits(story.timeline(tmp_path_factory.mktemp("runs")))
    assert split.seconds.sum(axis=1) == pytest.approx(split.total)
    assert split.total == pytest.approx(np.array(ends, dtype=float))
    for k in range(12):
        for phase, seconds in by_asking(stretches, k).items():
            assert split.of(phase)[k] == pytest.approx(seconds), phase


def by_asking(stretches, k):
    """Seconds by phase of run k, by looking at the middle of every second."""
    mine = [(phase, start, start + length) for run, phase, start, length in stretches if run == k]
    found = dict.fromkeys(PRECEDENCE, 0)
    for second in range(60):
        alive = {phase for phase, start, end in mine if start <= second + 0.5 < end}
        first = next((phase for phase in PRECEDENCE if phase in alive), None)
        if first:
            found[first] += 1
    return found


def test_a_burst_is_accounted_for_to_the_last_second(tmp_path):
    split = waits(burst(60).timeline(tmp_path))
    assert np.abs(split.seconds.sum(axis=1) - split.total).max() < 1e-9
    assert split.of(UNKNOWN).sum() == 0


def test_the_covered_part_of_an_interval_is_that_of_all_intervals_in_it():
    starts, ends = np.array([0.0, 10.0, 20.0]), np.array([2.0, 14.0, 30.0])
    covered = coverage(starts, ends, np.array([1.0, 3.0, 12.0]), np.array([12.0, 9.0, 50.0]))
    assert covered.tolist() == [3.0, 0.0, 12.0]


def test_shares_are_of_all_the_time_of_all_runs():
    seconds = np.zeros((2, len(RUN_PHASES)))
    seconds[:, RUN_PHASES.index(RUNNING)] = (6.0, 0.0)
    seconds[:, RUN_PHASES.index(CONTROLLER)] = (2.0, 4.0)
    shares = Waits(np.arange(2), seconds, np.array([8.0, 4.0])).shares()
    assert (shares[RUNNING], shares[CONTROLLER], sum(shares.values())) == (0.5, 0.5, 1.0)
    assert set(Waits(np.arange(0), seconds[:0], np.zeros(0)).shares().values()) == {0.0}


def test_large_tests_are_split_in_blocks_of_whole_runs(tmp_path, monkeypatch):
    def split(name):
        story = Story(intended=5)
        for seq in range(5):
            run = story.submit(seq)
            story.pod(run, "a", "n", (SCHEDULING, 1.0, 2.0 + seq), (RUNNING, 2.0 + seq, 10.0))
            story.pod(run, "b", "n", (RUNNING, 12.0, 13.0 + seq))
            story.run(run, 0.0, 20.0)
        return waits(story.timeline(tmp_path / name))

    whole = split("whole")
    monkeypatch.setattr("harness.analysis.waits.waits._BLOCK", 4)
    assert np.array_equal(split("blocks").seconds, whole.seconds)


def test_the_segments_of_chosen_runs_are_their_phases_one_after_the_other(tmp_path):
    story = Story(intended=4)
    for seq in range(4):
        story.run(story.submit(seq, lag=0.0, service=0.0), 0.0, 12.0)
    story.pod("run-0000", "a", "n", (UNSCHEDULABLE, 1.0, 3.0), (RUNNING, 3.0, 5.0))
    story.pod("run-0000", "b", "n", (STORING, 4.0, 7.0), (RUNNING, 9.0, 12.0))
    story.pod("run-0001", "a", "n", (RUNNING, 0.0, 8.0))
    story.pod("run-0002", "a", "n", (RUNNING, 2.0, 6.0), (STORING, 6.0, 5.0))  # an interval that ends before it starts
    found = segments(story.timeline(tmp_path), np.array([True, False, True, True]))
    between = len(PRECEDENCE)
    kinds = [
        (UNSCHEDULABLE, 1.0, 3.0),
        (RUNNING, 3.0, 4.0),
        (RUNNING, 4.0, 5.0),
        (STORING, 5.0, 7.0),
        (None, 7.0, 9.0),
        (RUNNING, 9.0, 12.0),
    ]
    expected = [(0, between if name is None else PRECEDENCE.index(name), *ends) for name, *ends in kinds]
    expected.append((2, PRECEDENCE.index(RUNNING), 2.0, 6.0))
    rows = zip(found.row, found.level, found.start, found.end, strict=True)
    assert [row for row in rows if row[3] > row[2]] == expected
    assert found.length.sum() == 15.0
    assert segments(story.timeline(tmp_path / "none"), np.zeros(4, dtype=bool)).row.size == 0


@pytest.mark.parametrize("observed", [False, True])
def test_an_unfinished_run_without_a_pod_waits_for_one_where_pods_are_observed(observed, tmp_path):
    """A run that is over and had none is not explained, either way."""
    story = Story(intended=3)
    for seq in range(3):
        run = story.submit(seq, lag=0.0, service=1.0)
        story.run(run, 0.0, None if seq == 0 else 7.0)
    if observed:
        story.pod("run-0002", "a", "n", (RUNNING, 1.0, 7.0))
    story.event(20.0, "Test", "test", "DrainTimedOut")
    found = waits_so_far(story.timeline(tmp_path))
    assert found.of(CONTROLLER).tolist() == [19.0 if observed else 0.0, 0.0, 0.0]
    assert found.of(UNKNOWN).tolist() == [0.0 if observed else 19.0, 6.0, 0.0 if observed else 6.0]
    assert found.total.tolist() == [20.0, 7.0, 7.0]
