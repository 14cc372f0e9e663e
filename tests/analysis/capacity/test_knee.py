import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.capacity.knee import bend, knee
from tests.support.timelines import Story


@given(st.integers(3, 18), st.floats(0.2, 50.0), st.floats(0.5, 5.0))
def test_a_broken_line_is_recovered(place, level, slope):
    load = np.arange(1.0, 21.0)
    found = bend(load, level + slope * level * np.maximum(load - place, 0.0))
    assert found is not None
    assert found.in_flight == place
    assert found.level_s == pytest.approx(level, rel=1e-6)
    assert found.slope_s == pytest.approx(slope * level, rel=1e-6)
    assert found.explained == pytest.approx(1.0)


@pytest.mark.parametrize("latency", [lambda n: 0 * n + 5.0, lambda n: 2.0 * n, lambda n: 5.0 + 0.01 * np.sin(n)])
def test_a_level_and_a_straight_line_have_no_knee(latency):
    load = np.arange(1.0, 25.0)
    assert bend(load, latency(load)) is None


def test_the_knee_of_noisy_latencies_is_where_they_begin_to_rise():
    load = np.arange(1.0, 31.0)
    noise = np.random.default_rng(4).normal(0, 3, load.size)
    found = bend(load, 100 + 20 * np.maximum(load - 12, 0.0) + noise)
    assert found.in_flight == pytest.approx(12, abs=1)
    assert found.level_s == pytest.approx(100, abs=3)
    assert found.slope_s == pytest.approx(20, abs=1)
    line = np.maximum(load - found.in_flight, 0.0)
    assert found.explained == pytest.approx(np.corrcoef(line, 100 + 20 * np.maximum(load - 12, 0.0) + noise)[0, 1] ** 2)


@pytest.mark.parametrize(
    ("latency", "there"),
    [
        ([1.0, 1.0, 1.0, 1.0, 2.0, 3.0, 4.0], True),
        ([1.0, 1.0, 1.0, 1.0, 1.05, 1.1, 1.15], False),  # a rise by less than 30 %
        ([4.0, 4.0, 4.0, 4.0, 3.0, 2.0, 1.0], False),  # less load, not more, takes longer
        ([1.0, 3.0, 1.0, 3.0, 1.0, 3.0, 3.0], False),  # mostly chance
        ([1.0, 1.0, 1.0, 2.0], False),  # too few loads
        ([], False),
        ([10.0, 21.0, 29.0, 42.0, 50.0, 61.0, 70.0], False),  # a straight line, nearly
    ],
)
def test_a_knee_is_a_marked_rise_that_explains_most_of_the_differences(latency, there):
    assert (bend(np.arange(1.0, 1.0 + len(latency)), np.array(latency)) is not None) is there


def single_server(count=400, slow_from=100):
    """Ten at once take 4 s each; from the eleventh on a run waits for its turn."""
    story, free = Story(intended=count), [0.0] * 10
    for seq in range(count):
        due = 0.5 * seq if seq < slow_from else 0.5 * slow_from + 0.25 * (seq - slow_from)
        begun = max(due, min(free))
        free[free.index(min(free))] = begun + 4.0
        story.run(story.submit(seq, due=due, lag=0.0, service=0.01), due + 0.005, begun + 4.0)
    return story


def test_a_single_server_bends_where_it_is_saturated(tmp_path):
    story = single_server()
    for seq in range(400, 500):  # runs whose end was not observed don't count
        story.run(story.submit(seq, due=0.25 * seq, lag=0.0, service=0.01), 0.25 * seq, None)
    found = knee(story.timeline(tmp_path))
    assert found is not None
    assert found.in_flight == pytest.approx(10, abs=3)
    assert found.level_s == pytest.approx(4.0, rel=0.15)
    assert found.slope_s == pytest.approx(0.4, rel=0.2)


def test_few_runs_show_no_knee(tmp_path):
    assert knee(single_server(59, slow_from=20).timeline(tmp_path / "59")) is None
    assert knee(single_server(60, slow_from=20).timeline(tmp_path / "60")) is not None
