import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.services.workers import gini, workers
from harness.model.phases import COMPUTING, LOADING, QUEUED, SENDING
from tests.support.timelines import Story


def test_replicas_by_hand(tmp_path):
    """Two replicas: a does two executions that overlap, b one that lasts longer."""
    story = Story(intended=3)
    for seq, (name, begun, compute) in enumerate((("a", 0.0, 2.0), ("a", 2.0, 2.0), ("b", 0.0, 16.0))):
        run = story.submit(seq, due=begun, lag=0.0, service=0.001)
        ends = np.cumsum([begun + 1.0, 1.0, compute, 1.0]).tolist()
        phases = zip((QUEUED, LOADING, COMPUTING, SENDING), [begun, *ends[:-1]], ends, strict=True)
        story.pod(run, "anomaly", name, *phases)
        story.run(run, begun, ends[-1])
    found = workers(story.timeline(tmp_path))
    a, b = found.workers
    assert (a.name, a.executions, b.name, b.executions) == ("a", 2, "b", 1)
    assert (a.computing_s, a.busy_s, a.last_s) == pytest.approx((4.0, 6.0, 7.0))
    assert (b.computing_s, b.busy_s, b.last_s) == pytest.approx((16.0, 18.0, 19.0))
    assert found.tail_s == pytest.approx(12.0)
    assert found.over_s == pytest.approx(18.0)
    assert found.gini == pytest.approx(0.5 - 4 / 20)
    whole = 3 + 6 + 20
    assert (found.waiting, found.io, found.computing) == pytest.approx((3 / whole, 6 / whole, 20 / whole))


def test_a_replica_that_has_not_finished_anything_is_busy_to_the_end(tmp_path):
    story = Story(intended=2)
    for seq, (name, end) in enumerate((("a", 4.0), ("b", None))):
        run = story.submit(seq, lag=0.0, service=0.001)
        story.pod(run, "anomaly", name, (COMPUTING, 1.0, end))
        story.run(run, 0.0, end)
    story.sample(10.0, "watched", 1.0)
    a, b = workers(story.timeline(tmp_path)).workers
    assert (a.busy_s, a.last_s) == pytest.approx((3.0, 4.0))
    assert (b.busy_s, b.last_s, b.computing_s) == pytest.approx((9.0, 10.0, 0.0))


def test_runs_made_of_pods_have_no_replicas(tmp_path):
    assert workers(Story().timeline(tmp_path)) is None


@given(st.lists(st.floats(0.0, 1e6), min_size=1, max_size=30))
def test_gini_is_half_the_mean_difference_over_the_mean(work):
    values = np.array(work)
    if values.sum() < 1e-3:
        return
    expected = np.abs(values[:, None] - values[None, :]).mean() / (2 * values.mean())
    assert gini(values) == pytest.approx(expected, abs=1e-9)
