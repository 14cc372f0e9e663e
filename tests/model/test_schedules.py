import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.model import Burst, ConfigError, Constant, Poisson, Ramp, Replay, Spread, Stages
from harness.model.schedules import MOST_ARRIVALS, due_times, from_mapping, in_words, to_mapping


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
        (Burst(4, ramp_in_s=2.0), [0.0, 0.5, 1.0, 1.5]),
        (Burst(2, every_s=30.0, times=2, ramp_in_s=10.0), [0.0, 5.0, 30.0, 35.0]),
        (Burst(2, ramp_in_s=4.0).then(Constant(1.0, 2.0)).then(Burst(1)), [0.0, 2.0, 4.0, 5.0, 6.0]),
        (Ramp(2.0, 2.0, 2.0), [0.0, 0.5, 1.0, 1.5]),
        (Ramp(0.0, 2.0, 2.0), [0.0, 2**0.5]),  # N(t) = t²/2
        (Ramp(4.0, 0.0, 2.0), [0.0, 2 - 3**0.5, 2 - 2**0.5, 1.0]),  # N(t) = 4t - t²
        (Replay((0.0, 0.0, 7.5)), [0.0, 0.0, 7.5]),
        (Stages((Constant(1.0, 2.0), Burst(2), Spread(2, 10.0))), [0.0, 1.0, 2.0, 2.0, 2.0, 7.0]),
        (Stages((Burst(1, every_s=5.0, times=2), Burst(1))), [0.0, 5.0, 10.0]),
    ],
)
def test_offsets_are_a_table(schedule, offsets):
    assert list(schedule.offsets(seed=1)) == pytest.approx(offsets)


def test_equal_stages_draw_anew():
    part = Poisson(5.0, 20.0)
    offsets = list(Stages((part, part)).offsets(3))
    assert offsets == pytest.approx([*part.offsets(3), *(20.0 + each for each in part.offsets(4))])
    assert list(part.offsets(3)) != list(part.offsets(4))


def test_a_constant_rate_does_not_drift_in_an_hour():
    last = list(Constant(500.0, 3600.0).offsets(seed=1))[-1]
    assert abs(last - (3600.0 - 1 / 500.0)) < 1e-3


simple = st.one_of(
    st.builds(Constant, st.floats(0.01, 50), st.floats(0.1, 50)),
    st.builds(Spread, st.integers(1, 200), st.floats(0.1, 1e4), st.floats(0, 1)),
    st.builds(Burst, st.integers(1, 50), st.floats(0.1, 100), st.integers(1, 5), st.floats(0, 0.1)),
    st.builds(Poisson, st.floats(0.01, 50), st.floats(0.1, 50)),
    st.builds(Ramp, st.floats(0.01, 50), st.floats(0.0, 50), st.floats(0.1, 50)),
)


@given(simple, st.integers(0, 99))
def test_every_arrival_is_due_within_the_schedules_length(schedule, seed):
    for offset in schedule.offsets(seed):
        assert offset <= schedule.length_s * (1 + 1e-9) or isinstance(schedule, Burst)


@given(st.floats(0.5, 20), st.floats(0.5, 20), st.floats(1, 60))
def test_a_ramp_has_as_many_arrivals_as_its_mean_rate_says(start, end, duration_s):
    count = len(list(Ramp(start, end, duration_s).offsets(1)))
    assert abs(count - (start + end) / 2 * duration_s) <= 1


def test_poisson_arrivals_have_the_rate_and_the_dispersion_of_a_poisson_process():
    counts = [0] * 2000
    for offset in Poisson(5.0, 2000.0).offsets(seed=3):
        counts[int(offset)] += 1
    mean = sum(counts) / len(counts)
    dispersion = sum((count - mean) ** 2 for count in counts) / (len(counts) - 1) / mean
    assert mean == pytest.approx(5.0, rel=0.03)
    assert dispersion == pytest.approx(1.0, abs=0.1)  # variance = mean


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
        lambda: Poisson(1, 0),
        lambda: Ramp(0, 0, 5),
        lambda: Ramp(-1, 5, 5),
        lambda: Replay(()),
        lambda: Replay((3.0, 2.0)),
        lambda: Stages(()),
        lambda: from_mapping({"name": "moonlight"}),
        lambda: from_mapping({"name": "burst", "colour": "red"}),
    ],
)
def test_impossible_schedules_are_configuration_errors(make):
    with pytest.raises(ConfigError):
        make()


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (Burst(200), "burst, runs 200"),
        (Burst(10, every_s=90.0, times=3), "burst, every 90 s, runs 10, times 3"),
        (Spread(300, 3600.0, jitter=0.2), "spread, jitter 0.2, over 1 h, runs 300"),
        (Ramp(1.0, 10.0, 60.0), "ramp, duration 60 s, end rate 10/s, start rate 1/s"),
        (Stages((Burst(5), Constant(2.0, 30.0))), "burst, runs 5 then constant, duration 30 s, rate 2/s"),
    ],
)
def test_a_schedule_in_words(schedule, words):
    assert in_words(to_mapping(schedule)) == words


def test_without_a_schedule_runs_were_observed():
    assert in_words({}) == "observed"


@pytest.mark.parametrize(
    ("schedule", "said"),
    [
        (Burst(10**12), "more than 9,999 arrivals"),
        (Burst(1, 1.0, 10**12), "more than 9,999 arrivals"),
        (Constant(1e300, 1e300), "more than 9,999 arrivals"),
        (Constant(1e-9, 1e10), "due after"),
    ],
)
def test_a_schedule_is_bounded(monkeypatch, schedule, said):
    assert MOST_ARRIVALS == 10_000_000
    monkeypatch.setattr("harness.model.schedules.schedule.MOST_ARRIVALS", 9_999)
    with pytest.raises(ConfigError, match=said):
        due_times(schedule, 1)
