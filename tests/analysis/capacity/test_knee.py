import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.capacity.knee import bend, knee
from tests.support.timelines import Story


@given(st.integers(3, 16), st.floats(1.0, 50.0), st.floats(0.5, 5.0))
def test_a_broken_line_is_recovered(place, level, slope):
    load = np.arange(1.0, 21.0)
    found = bend(load, level + slope * level * np.maximum(load - place, 0.0))
    assert found is not None
    assert found.in_flight == place
    assert found.level_s == pytest.approx(level, rel=1e-6)
    assert found.slope_s == pytest.approx(slope * level, rel=1e-6)


@pytest.mark.parametrize("latency", [lambda n: 0 * n + 5.0, lambda n: 2.0 * n, lambda n: 5.0 + 0.01 * np.sin(n)])
def test_a_level_and_a_straight_line_have_no_knee(latency):
    load = np.arange(1.0, 25.0)
    assert bend(load, latency(load)) is None


def test_a_single_server_bends_where_it_is_saturated(tmp_path):
    """Ten at once take 4 s each; from the eleventh on a run waits for its turn."""
    story, free = Story(intended=400), [0.0] * 10
    for seq in range(400):
        due = 0.5 * seq if seq < 100 else 50 + 0.25 * (seq - 100)
        begun = max(due, min(free))
        free[free.index(min(free))] = begun + 4.0
        story.run(story.submit(seq, due=due, lag=0.0, service=0.01), due + 0.005, begun + 4.0)
    found = knee(story.timeline(tmp_path))
    assert found is not None
    assert found.in_flight == pytest.approx(10, abs=3)
    assert found.level_s == pytest.approx(4.0, rel=0.15)
    assert found.slope_s == pytest.approx(0.4, rel=0.2)


def test_few_runs_show_no_knee(tmp_path):
    story = Story(intended=1)
    story.run(story.submit(0), 0.0, 4.0)
    assert knee(story.timeline(tmp_path)) is None
