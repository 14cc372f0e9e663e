import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.analysis.timeline.clocks import ahead, step
from harness.analysis.waits.waits import waits
from harness.model.phases import CONTROLLER
from tests.support.injected.loads import steady


@given(st.floats(-60, 60), st.integers(1, 50), st.floats(0, 3))
def test_the_skew_estimate_is_a_lower_bound_within_the_timestamps_resolution(skew, count, service):
    sent = 0.37 * np.arange(count)
    answered = sent + service
    created = np.floor(sent + service / 2 + skew)
    found = ahead(sent, answered, created)
    assert abs(found) <= abs(skew) + 1e-9
    assert abs(found - skew) <= 1.0 + service + 0.5
    assert found * skew >= 0


@given(
    st.floats(-60, 60), st.lists(st.tuples(st.floats(0, 5), st.floats(0, 1)), min_size=6, max_size=40),
    st.sampled_from([-30.0, 0.0, 30.0]), st.floats(0.1, 0.9),
)  # fmt: skip
def test_a_step_of_a_clock_is_found_and_nothing_else_looks_like_one(skew, services, by, part):
    """Runs are created at any time between the sending and the answer, which takes up to 5 s."""
    service, at = np.array(services).T
    sent = 1.7 * np.arange(service.size)
    after = np.arange(service.size) >= np.clip(round(part * service.size), 3, service.size - 3)
    created = np.floor(sent + service * at + skew + by * after)
    found = step(sent, sent + service, created)
    assert found == 0.0 if by == 0 else found == pytest.approx(by, abs=6.5)


def test_clocks_that_agree_are_left_alone(tmp_path):
    assert steady(40).timeline(tmp_path).skew_s == 0


def test_the_platforms_timestamps_are_corrected(tmp_path):
    early, right = steady(40, skew=50.0).timeline(tmp_path / "a"), steady(40).timeline(tmp_path / "b")
    assert early.skew_s == pytest.approx(50.0, abs=1.0)
    assert waits(early).of(CONTROLLER).mean() == pytest.approx(waits(right).of(CONTROLLER).mean(), abs=1.0)
    assert waits(early).total.mean() == pytest.approx(waits(right).total.mean(), abs=1.0)
