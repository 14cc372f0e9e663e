import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.throughput import throughput, windows
from harness.model.phases import FAILED
from tests.support.timelines import Story, burst


def test_every_run_is_counted_in_one_window(tmp_path):
    flow = throughput(burst(100, store_full_from=0.7).timeline(tmp_path))
    assert (flow.succeeded.sum(), flow.failed.sum(), flow.due.sum()) == (70, 30, 100)


def test_a_hand_worked_case(tmp_path):
    story = Story(intended=2)
    story.node("n", created=-100.0, ready=-90.0)
    story.node("late", created=20.0, ready=30.0, gone=45.0)
    story.run(story.submit(0, lag=0.0, service=0.0), 0.0, 30.0)
    story.run(story.submit(1, lag=0.0, service=0.0), 0.0, 60.0, FAILED)
    flow = throughput(story.timeline(tmp_path))
    assert flow.width_s == 1.0
    assert (flow.makespan_s, flow.per_hour, flow.over_per_hour) == (60.0, pytest.approx(60.0), pytest.approx(120.0))
    assert flow.nodes[[0, 29, 30, 44, 45]].tolist() == [1, 1, 2, 2, 1]
    assert flow.in_flight[[0, 29, 30, 59, 60]].tolist() == [2, 2, 1, 1, 0]
    assert flow.succeeded[30] == 1
    assert flow.failed[60] == 1


def test_unobserved_nodes_are_unknown_not_none(tmp_path):
    story = Story(intended=1)
    story.run(story.submit(0), 0.0, 5.0)
    assert np.isnan(throughput(story.timeline(tmp_path)).nodes).all()


@pytest.mark.parametrize(("ends", "width"), [((3.0, 5.0, 8.0), 1.0), ((3.0, 5.5, 8.0), 0.2)])
def test_whole_second_timestamps_get_windows_of_whole_seconds(tmp_path, ends, width):
    story = Story(intended=3)
    for seq, end in enumerate(ends):
        story.run(story.submit(seq), 0.0, end)
    assert throughput(story.timeline(tmp_path)).width_s == pytest.approx(width)


@given(st.floats(0, 1e7))
def test_windows_have_one_round_width_and_reach_past_the_end(end):
    edges = windows(end)
    assert edges[0] == 0
    assert edges[-1] > end
    assert np.diff(edges) == pytest.approx(edges[1])
