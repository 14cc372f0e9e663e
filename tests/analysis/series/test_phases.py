"""Phases and pods' waits summed up, worked by hand."""

import numpy as np
import pytest

from harness.analysis.series.phases import pending_pods, phase_breakdown
from harness.model.phases import RUN_PHASES, RUNNING, UNSCHEDULABLE
from tests.support.timelines import Story


def waiting(*waits, ends_s=200.0):
    """A pod for each (start, end) of a wait without a node; no end is still waiting."""
    story = Story(intended=len(waits))
    for seq, (start, end) in enumerate(waits):
        run = story.submit(seq)
        stretches = [] if start is None else [(UNSCHEDULABLE, start, end)]
        if end is not None:
            stretches.append((RUNNING, end, end + 1.0))
        story.pod(run, "train", None if end is None else "n", *stretches)
        story.run(run, 0.0, None if end is None else end + 2.0)
    story.event(ends_s, "Test", "test", "DrainTimedOut")
    return story


def test_an_open_wait_lasts_until_the_end_of_the_observation(tmp_path):
    found = pending_pods(waiting((0.0, 10.0), (20.0, 24.0), (70.0, None), (None, 3.0)).timeline(tmp_path))
    assert (found.pods, found.waited, found.longest_s, found.median_s) == (4, 3, 130.0, 10.0)
    assert found.soon == 0.5, "one waited four seconds, one not at all"


def test_waits_are_counted_apart_by_whether_they_began_in_the_first_minute(tmp_path):
    story = waiting((0.0, 40.0), (59.0, 60.0), (60.0, 80.0), (90.0, 130.0))
    found = pending_pods(story.timeline(tmp_path))
    assert found.edges_s.size == 41
    assert (found.edges_s[0], found.edges_s[-1]) == (0.0, pytest.approx(40.0))
    assert np.flatnonzero(found.early).tolist() == [0, 39], "of a second each, up to the longest wait and with it"
    assert np.flatnonzero(found.later).tolist() == [19, 39]
    assert (found.early.sum(), found.later.sum()) == (2, 2)


def test_five_seconds_are_soon(tmp_path):
    assert pending_pods(waiting((0.0, 5.0), (0.0, 5.1)).timeline(tmp_path)).soon == 0.5


def test_without_waiting_pods_there_is_no_histogram(tmp_path):
    assert pending_pods(waiting((None, 3.0)).timeline(tmp_path)) is None


def lasting(*seconds):
    """Runs of one pod each, which begins when its run is answered and ends a second before it."""
    story = Story(intended=len(seconds))
    for seq, lasts in enumerate(seconds):
        run = story.submit(seq, lag=0.0, service=1.0)
        story.pod(run, "train", "n", (RUNNING, 1.0, lasts - 1.0))
        story.run(run, 0.0, float(lasts))
    return story


def test_phases_of_finished_runs_are_summed_up(tmp_path):
    found = phase_breakdown(lasting(10, 20, 30, 40).timeline(tmp_path))
    phases = {each.name: each for each in found.phases}
    assert tuple(phases) == RUN_PHASES
    running = phases[RUNNING]
    assert (found.runs, found.mean_total_s, found.longest_s, found.reversed) == (4, 25.0, 40.0, 0)
    assert (running.share, running.mean_s) == pytest.approx((92 / 100, 23.0))
    assert (running.least_s, running.p50_s, running.p95_s, running.most_s) == (8.0, 18.0, 38.0, 38.0)
    assert running.seen
    assert not phases[UNSCHEDULABLE].seen
    assert sum(each.share for each in found.phases) == pytest.approx(1.0)


def test_groups_of_runs_lie_around_a_quantile_of_their_duration(tmp_path):
    """Of a hundred runs of 11 s to 110 s: two on each side of the 50th, the 90th and the 99th."""
    found = phase_breakdown(lasting(*range(11, 111)).timeline(tmp_path))
    place = RUN_PHASES.index(RUNNING)
    assert {group.name: float(group.mean_s[place]) for group in found.groups} == pytest.approx(
        {"all runs (mean)": 58.5, "typical (p50)": 58.0, "slow (p90)": 98.0, "slowest (p99)": 106.5}
    )


def test_arrivals_are_shown_in_sixty_groups_or_fewer(tmp_path):
    by_arrival = phase_breakdown(lasting(*range(11, 111)).timeline(tmp_path)).by_arrival
    assert (by_arrival.size, by_arrival.seq.size, by_arrival.longest_s) == (2, 50, 109.5)
    assert np.array_equal(by_arrival.seq, np.arange(1.0, 100.0, 2.0))
    assert by_arrival.mean_s[0, RUN_PHASES.index(RUNNING)] == 9.5
    assert phase_breakdown(lasting(10, 20, 30).timeline(tmp_path / "few")).by_arrival is None


def test_without_finished_runs_nothing_is_known(tmp_path):
    found = phase_breakdown(waiting((0.0, None)).timeline(tmp_path))
    assert (found.runs, found.groups, found.by_arrival, found.caveat) == (0, (), None, "")
    assert np.isnan(found.mean_total_s)
    assert np.isnan(found.longest_s)
    assert all(np.isnan(each.mean_s) and not each.seen for each in found.phases)
