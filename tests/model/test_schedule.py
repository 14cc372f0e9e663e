import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model import Burst, ConfigError, Constant, Spread
from harness.model.schedule import from_mapping, to_mapping


@pytest.mark.parametrize(
    ("schedule", "offsets"),
    [
        (Constant(2.0, 2.0), [0.0, 0.5, 1.0, 1.5]),
        (Constant(0.1, 60.0), [0.0, 10.0, 20.0, 30.0, 40.0, 50.0]),
        (Constant(1 / 3, 9.0), [0.0, 3.0, 6.0]),
        (Constant(0.1, 5.0), []),
        (Spread(4, 60.0), [0.0, 15.0, 30.0, 45.0]),
        (Spread(1, 60.0), [0.0]),
        (Burst(3), [0.0, 0.0, 0.0]),
        (Burst(2, every_s=30.0, times=3), [0.0, 0.0, 30.0, 30.0, 60.0, 60.0]),
    ],
)
def test_offsets_are_a_table(schedule, offsets):
    assert list(schedule.offsets(seed=1)) == pytest.approx(offsets)


def test_a_constant_rate_does_not_drift_in_an_hour():
    last = list(Constant(500.0, 3600.0).offsets(seed=1))[-1]
    assert abs(last - (3600.0 - 1 / 500.0)) < 1e-3


schedules = st.one_of(
    st.builds(Constant, st.floats(0.01, 50), st.floats(0.1, 50)),
    st.builds(Spread, st.integers(1, 200), st.floats(0.1, 1e4), st.floats(0, 1)),
    st.builds(Burst, st.integers(1, 50), st.floats(0.1, 100), st.integers(1, 5)),
)


@given(schedules, st.integers(0, 2**32))
def test_offsets_never_decrease_and_repeat_with_the_seed(schedule, seed):
    offsets = list(schedule.offsets(seed))
    assert offsets == sorted(offsets)
    assert offsets == list(schedule.offsets(seed))
    assert all(offset >= 0 for offset in offsets)


@given(schedules, st.integers(0, 99))
def test_a_schedule_comes_back_from_the_manifest(schedule, seed):
    again = from_mapping(to_mapping(schedule))
    assert again == schedule
    assert list(again.offsets(seed)) == list(schedule.offsets(seed))


@given(st.integers(1, 300), st.floats(0, 1), st.integers(0, 99))
def test_jitter_keeps_every_arrival_in_its_own_slot(runs, jitter, seed):
    spacing = 100.0 / runs
    for k, offset in enumerate(Spread(runs, 100.0, jitter).offsets(seed)):
        assert k * spacing <= offset <= (k + jitter) * spacing + 1e-9


@pytest.mark.parametrize(
    "make",
    [
        lambda: Constant(0, 1),
        lambda: Constant(1, -1),
        lambda: Spread(0, 1),
        lambda: Spread(1, 1, jitter=1.5),
        lambda: Burst(0),
        lambda: Burst(1, every_s=0, times=2),
        lambda: from_mapping({"name": "moonlight"}),
    ],
)
def test_impossible_schedules_are_configuration_errors(make):
    with pytest.raises(ConfigError):
        make()
