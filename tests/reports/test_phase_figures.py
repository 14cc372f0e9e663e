"""Figures of phases and of pods' waits, worked by hand."""

import numpy as np
import pytest

from harness.analysis.result import analyse
from harness.detectors import diagnose
from harness.model.phases import MEANINGS, RUN_PHASES, RUNNING
from reports.figures import figures
from tests.support.stories import lasting, waiting


def drawn(story, place):
    timeline = story.timeline(place)
    return figures(analyse(timeline, diagnose(timeline)))


def trace(figure, name):
    return next(trace for trace in figure.spec["data"] if trace["name"] == name)


def test_an_open_wait_lasts_until_the_end_of_the_observation(tmp_path):
    pending = drawn(waiting((0.0, 10.0), (20.0, 24.0), (70.0, None), (None, 3.0)), tmp_path)["pending"]
    assert pending.caption.startswith("3 of 4 pods found no node at first; median wait of those 10 s. 50%"), "one short"
    assert max(trace(pending, "pending since a later time")["x"]) == pytest.approx(130.0, abs=2.0)


def test_waits_are_counted_apart_by_whether_they_began_in_the_first_minute(tmp_path):
    pending = drawn(waiting((0.0, 40.0), (59.0, 60.0), (60.0, 80.0), (90.0, 130.0)), tmp_path)["pending"]
    early, later = (trace(pending, f"pending since {when}") for when in ("the first minute", "a later time"))
    assert len(early["x"]) == 40
    assert early["x"][0] == 0.5
    assert np.flatnonzero(early["y"]).tolist() == [0, 39], "of a second each, up to the longest wait and with it"
    assert np.flatnonzero(later["y"]).tolist() == [19, 39]
    assert (sum(early["y"]), sum(later["y"])) == (2, 2)


def test_five_seconds_are_soon(tmp_path):
    assert "50% of all pods waited less" in drawn(waiting((0.0, 5.0), (0.0, 5.1)), tmp_path)["pending"].caption


def test_without_waiting_pods_there_is_no_histogram(tmp_path):
    assert "pending" not in drawn(waiting((None, 3.0)), tmp_path)


def test_groups_of_runs_lie_around_a_quantile_of_their_duration(tmp_path):
    """Of a hundred runs of 11 s to 110 s: two on each side of the 50th, the 90th and the 99th."""
    running = trace(drawn(lasting(*range(11, 111)), tmp_path)["phases"], RUNNING)
    assert dict(zip(running["y"], running["x"], strict=True)) == pytest.approx(
        {"all runs (mean)": 58.5, "typical (p50)": 58.0, "slow (p90)": 98.0, "slowest (p99)": 106.5}
    )


def test_arrivals_are_shown_in_sixty_groups_or_fewer(tmp_path):
    by_order = drawn(lasting(*range(11, 111)), tmp_path)["phases-by-order"]
    running = trace(by_order, RUNNING)
    assert running["x"] == np.arange(1.0, 100.0, 2.0).tolist()
    assert running["y"][0] == 9.5
    assert "the mean of 2 runs" in by_order.caption
    assert "phases-by-order" not in drawn(lasting(10, 20, 30), tmp_path / "few")


def test_without_finished_runs_no_phases_are_drawn(tmp_path):
    assert {"phases", "phases-by-order"}.isdisjoint(drawn(waiting((0.0, None)), tmp_path))


def test_each_phase_says_what_it_means():
    assert set(MEANINGS) == set(RUN_PHASES)
