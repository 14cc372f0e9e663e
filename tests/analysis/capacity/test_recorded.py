import numpy as np
import pytest

from harness.analysis.capacity.recorded import eviction_factor, recorded
from tests.support.timelines import burst


def test_evictions_repeat_work_as_in_simulation():
    """Oracle: steps of 1 h on nodes that are taken back at random, 0.5 times an hour."""
    random = np.random.default_rng(3)
    total = 0.0
    for _ in range(20_000):
        while (until := random.exponential(7200.0)) < 3600.0:
            total += until
        total += 3600.0
    assert eviction_factor(3600.0, 0.5, 0.0) == pytest.approx(total / 20_000 / 3600.0, rel=0.03)
    assert eviction_factor(3600.0, 0.0, 180.0) == 1.0
    assert eviction_factor(1.0, 0.5, 180.0) == pytest.approx(1 + 0.5 * 180 / 3600, rel=1e-3)


def test_a_recorded_burst_is_an_observation(tmp_path):
    story = burst(200, pool=2)
    test = recorded(story.timeline(tmp_path))
    (observation,) = test.observations
    assert (observation.runs, observation.nodes) == (200, 2)
    assert observation.duration_s == pytest.approx(
        max(r.ended_at or 0 for r in story.records if getattr(r, "phase", "") == "run") / 1e9 - 1_790_000_000, abs=1
    )
    assert test.step_s == pytest.approx(3.0)
    assert test.price is None
