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
        (Stages((Burst(2, ramp_in_s=4.0), Constant(1.0, 2.0), Burst(1))), [0.0, 2.0, 4.0, 5.0, 6.0]),
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


ABOVE_0 = "\n  → it must be above 0"
RATES = "\n  → give two rates from 0 on, at least one of them above 0"
SORTED = "the due times go back in time\n  → sort the file by due_s, from 0 on"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Constant(0, 1), f"'rate' is 0{ABOVE_0}"),
        (lambda: Constant(1, -1), f"'duration' is -1{ABOVE_0}"),
        (lambda: Spread(0, 1), f"'runs' is 0{ABOVE_0}"),
        (lambda: Spread(1, 0), f"'over' is 0{ABOVE_0}"),
        (lambda: Spread(1, 1, jitter=1.5), "the jitter is 1.5\n  → give a share of the spacing, from 0 to 1"),
        (lambda: Spread(1, 1, jitter=-0.1), "the jitter is -0.1\n  → give a share of the spacing, from 0 to 1"),
        (lambda: Burst(0), f"'runs' is 0{ABOVE_0}"),
        (lambda: Burst(1, times=0), f"'times' is 0{ABOVE_0}"),
        (lambda: Burst(1, every_s=0, times=2), f"'every' is 0{ABOVE_0}"),
        (lambda: Burst(1, 5.0, 2, 5.1), "the ramp-in is 5.1 s\n  → give at most the time between bursts"),
        (lambda: Burst(1, ramp_in_s=-1.0), "the ramp-in is -1 s\n  → give at most the time between bursts"),
        (lambda: Poisson(0, 1), f"'rate' is 0{ABOVE_0}"),
        (lambda: Poisson(1, 0), f"'duration' is 0{ABOVE_0}"),
        (lambda: Ramp(0, 0, 5), f"the ramp goes from 0 to 0 arrivals a second{RATES}"),
        (lambda: Ramp(-1, 5, 5), f"the ramp goes from -1 to 5 arrivals a second{RATES}"),
        (lambda: Ramp(1, 5, 0), f"'duration' is 0{ABOVE_0}"),
        (lambda: Replay(()), "the schedule has no arrivals\n  → give a file with one row per arrival"),
        (lambda: Replay((3.0, 2.0)), SORTED),
        (lambda: Replay((-1.0, 2.0)), SORTED),
        (lambda: Stages(()), "there is no stage\n  → give at least one"),
        (
            lambda: from_mapping({"name": "moonlight"}),
            (
                "there is no schedule 'moonlight'\n"
                "  → schedules: spread, burst, concurrency, constant, poisson, ramp, replay, stages"
            ),
        ),
        (
            lambda: from_mapping({"name": "spread", "runs": 3}),
            (
                "{'name': 'spread', 'runs': 3} is not a schedule: "
                "Spread.__init__() missing 1 required positional argument: 'over_s'\n"
                "  → was the run made by a newer version?"
            ),
        ),
        (
            lambda: from_mapping({"parts": 1}),
            "{'parts': 1} is not a schedule: 'name'\n  → was the run made by a newer version?",
        ),
        (
            lambda: from_mapping({"name": "replay", "source": "a.csv"}),
            "the due times of a.csv are not in the manifest\n  → replay the run folder",
        ),
    ],
)
def test_an_impossible_schedule_is_refused_with_what_to_do(make, said):
    with pytest.raises(ConfigError) as refused:
        make()
    assert str(refused.value) == said


@pytest.mark.parametrize(
    "make",
    [
        lambda: Spread(1, 0.1, jitter=1.0), lambda: Burst(1, every_s=5.0, times=2, ramp_in_s=5.0),
        lambda: Ramp(0.0, 0.5, 5), lambda: Ramp(0.5, 0.0, 5), lambda: Replay((0.0,)), lambda: Replay((0.0, 0.5, 0.5)),
        lambda: Replay((1.0, 2.0)), lambda: Poisson(0.5, 0.5), lambda: Constant(0.5, 0.5),
    ],
)  # fmt: skip
def test_what_is_just_possible_is_accepted(make):
    assert make().length_s > 0 or make().due_s == (0.0,)


@pytest.mark.parametrize(
    ("schedule", "plain"),
    [
        (Burst(5), {"name": "burst", "runs": 5, "every_s": 0.0, "times": 1, "ramp_in_s": 0.0}),
        (Replay((0.0, 2.0), "a.csv"), {"name": "replay", "source": "a.csv"}),
        (
            Stages((Constant(2.0, 30.0), Poisson(1.0, 5.0))),
            {
                "name": "stages",
                "parts": [
                    {"name": "constant", "rate": 2.0, "duration_s": 30.0},
                    {"name": "poisson", "rate": 1.0, "duration_s": 5.0},
                ],
            },
        ),
    ],
)
def test_the_form_in_a_manifest(schedule, plain):
    assert to_mapping(schedule) == plain


def test_as_many_arrivals_as_are_allowed_are_listed_with_the_seed(monkeypatch):
    monkeypatch.setattr("harness.model.schedules.schedule.MOST_ARRIVALS", 50)
    schedule = Spread(50, 60.0, jitter=1.0)
    assert list(due_times(schedule, 3)) == list(schedule.offsets(3))
    assert list(due_times(schedule, 3)) != list(due_times(schedule, 4))
    assert list(due_times(Replay((1e9,)), 1)) == [1e9]


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


TOO_MANY = "the schedule has more than 9,999 arrivals\n  → give fewer runs, or a lower rate"


@pytest.mark.parametrize(
    ("schedule", "said"),
    [
        (Burst(10**12), TOO_MANY),
        (Burst(1, 1.0, 10**12), TOO_MANY),
        (Burst(10_000), TOO_MANY),
        (Constant(1e300, 1e300), TOO_MANY),
        (Constant(1e-9, 1.1e10), "its last arrival is due after 1e+10 s\n  → give a shorter time"),
    ],
)
def test_a_schedule_is_bounded(monkeypatch, schedule, said):
    assert MOST_ARRIVALS == 10_000_000
    monkeypatch.setattr("harness.model.schedules.schedule.MOST_ARRIVALS", 9_999)
    with pytest.raises(ConfigError) as refused:
        due_times(schedule, 1)
    assert str(refused.value) == said
