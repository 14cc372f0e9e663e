from math import inf

import pytest

from harness.model import Concurrency, ConfigError, Level
from harness.model.schedules.schedule import Document


@pytest.mark.parametrize(
    ("schedule", "changes"),
    [
        (Concurrency((Level(3, 60.0),), 2.0), [(0.0, 1), (0.5, 1), (1.0, 1)]),
        (Concurrency((Level(2),), 1.0, runs=5), [(0.0, 1), (1.0, 1)]),
        (
            Concurrency((Level(2, 10.0), Level(4, 10.0), Level(1, 10.0)), 1.0),
            [(0.0, 1), (1.0, 1), (10.0, 1), (11.0, 1), (20.0, -1), (21.0, -1), (22.0, -1)],
        ),
        # A level that ends before it is reached: the next one begins where this one got to.
        (Concurrency((Level(100, 2.0), Level(1, 5.0)), 1.0), [(0.0, 1), (1.0, 1), (2.0, -1)]),
        (Concurrency((Level(2, 5.0), Level(2, 5.0)), 1.0), [(0.0, 1), (1.0, 1)]),
        (Concurrency((Level(3, 2.0), Level(0, 2.0)), 1.0), [(0.0, 1), (1.0, 1), (2.0, -1), (3.0, -1)]),
    ],
)
def test_slots_are_added_and_removed_at_the_spawn_rate(schedule, changes):
    assert list(schedule.changes()) == changes


NONE = "no run would be in flight\n  → give a number of users above 0, as -u 10"
NO_END = "the levels have no end\n  → give runs, or a time above 0 for each level"
NO_RUNS = "a stage has no runs\n  → give each a number of runs above 0, as {runs: 5}"


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Concurrency(()), NONE),
        (lambda: Concurrency((Level(0, 60.0),)), NONE),
        (lambda: Concurrency((Level(-1, 60.0), Level(3, 60.0))), NONE),
        (
            lambda: Concurrency((Level(10_000_001, 60.0),)),
            "10,000,001 runs would be in flight\n  → give at most 10,000,000",
        ),
        (lambda: Concurrency((Level(3),)), NO_END),
        (lambda: Concurrency((Level(3), Level(4, 60.0))), NO_END),
        (lambda: Concurrency((Level(3), Level(4)), runs=9), NO_END),
        (lambda: Concurrency((Level(3, 0.0),)), NO_END),
        (lambda: Concurrency((Level(3, -1.0),)), NO_END),
        (
            lambda: Concurrency((Level(3, 60.0),), spawn_rate=0.0),
            "the spawn rate is 0\n  → give a rate above 0, as -r 2",
        ),
        (lambda: Concurrency((Level(3, 60.0),), runs=0), "the number of runs is 0\n  → give a number above 0"),
        (lambda: Concurrency((), stages=(2, 0)), NO_RUNS),
        (lambda: Concurrency((Level(3, 60.0),), stages=(2,)), NO_RUNS),
        (
            lambda: Concurrency((), stages=(10_000_000, 1)),
            "the stages have 10,000,001 runs\n  → give at most 10,000,000",
        ),
    ],
)
def test_impossible_levels_are_refused_with_what_to_do(make, said):
    with pytest.raises(ConfigError) as refused:
        make()
    assert str(refused.value) == said


@pytest.mark.parametrize(
    "make",
    [
        lambda: Concurrency((Level(10_000_000, 60.0),)),
        lambda: Concurrency((Level(1, 0.5),), spawn_rate=0.5),
        lambda: Concurrency((Level(0, 60.0), Level(3, 60.0))),
        lambda: Concurrency((Level(3, 60.0), Level(4)), runs=1),
        lambda: Concurrency((), stages=(1, 9_999_999)),
    ],
)
def test_what_is_just_possible_is_accepted(make):
    assert make().most_in_flight >= 1


@pytest.mark.parametrize(
    ("schedule", "length_s"),
    [
        (Concurrency((Level(3, 60.0), Level(1, 0.5))), 60.5),
        (Concurrency((Level(3, 60.0), Level(1)), runs=9), inf),
        (Concurrency((), stages=(2, 5)), inf),
    ],
)
def test_arrivals_become_due_until_the_last_level_is_over(schedule, length_s):
    assert schedule.length_s == length_s


VALUES = {"runs": None, "users": 4, "for": 90.0, "spawn-rate": 2.0, "schedule-file": None}


def read(**more):
    return Concurrency.parse(VALUES | {key.replace("_", "-"): value for key, value in more.items()})


def test_without_a_file_there_is_one_level_that_ends_with_the_runs_or_the_time():
    assert read() == Concurrency((Level(4, 90.0),), 2.0)
    assert read(runs=9) == Concurrency((Level(4),), 2.0, 9)


def test_a_file_lists_levels_or_stages():
    levels = Document("f", [{"users": "20", "for": "10m"}, {"users": 5}])
    assert read(schedule_file=levels, runs=9) == Concurrency((Level(20, 600.0), Level(5)), 2.0, 9)
    stages = Document("f", [{"runs": 2}, {"runs": 5}])
    assert read(schedule_file=stages) == Concurrency((), 2.0, 7, (2, 5))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"users": 3}, "f is not a list of levels\n  → begin each with '- users: …'"),
        ([], "f is not a list of levels\n  → begin each with '- users: …'"),
        ([{"users": 3, "for": 9}, 5], "f, level 2: it is not a level\n  → write it as {users: 20, for: 10m}"),
        ([{"for": 9}], "f, level 1: it is not a level\n  → write it as {users: 20, for: 10m}"),
        ([{"users": 3, "to": 9}], "f, level 1: it is not a level\n  → write it as {users: 20, for: 10m}"),
        ([{"users": "3.5"}], "f, level 1: '3.5' is not a whole number\n  → write it in digits"),
        (
            [{"users": 3, "for": "long"}],
            "f, level 1: 'long' is not a duration\n  → write it as 90s, 10m, 1h30m or a number of seconds",
        ),
        ([{"runs": 2}, {"users": 3}], "f, stage 2: it is not a stage\n  → write each as {runs: 5}"),
        ([{"runs": 2}, 3], "f, stage 2: it is not a stage\n  → write each as {runs: 5}"),
        ([{"runs": 2.5}], "f, stage 1: it is not a stage\n  → write each as {runs: 5}"),
        ([{"runs": 2, "for": 3}], "f, stage 1: it is not a stage\n  → write each as {runs: 5}"),
    ],
)
def test_another_file_is_refused_with_place_and_form(content, said):
    with pytest.raises(ConfigError) as refused:
        read(schedule_file=Document("f", content))
    assert str(refused.value) == said


def test_levels_and_stages_come_back_from_the_manifest():
    for schedule in (
        Concurrency((Level(3, 60.0), Level(9)), 2.0, 50),
        Concurrency((Level(3, 60.0),), 2.0),
        Concurrency((), runs=7, stages=(2, 5)),
    ):
        assert Concurrency.from_mapping(schedule.to_mapping()) == schedule


def test_the_manifest_says_that_it_is_closed():
    assert Concurrency((Level(3, 60.0),), 2.0).to_mapping() == {
        "name": "concurrency", "model": "closed", "spawn_rate": 2.0, "runs": None, "users": 3, "for_s": 60.0,
    }  # fmt: skip
    stages = Concurrency((Level(3, 60.0), Level(9)), 2.0, 50).to_mapping()
    assert stages["levels"] == [{"users": 3, "for_s": 60.0}, {"users": 9}]
    assert Concurrency((), runs=7, stages=(2, 5)).to_mapping() == {
        "name": "concurrency", "model": "closed", "runs": 7, "stages": [2, 5],
    }  # fmt: skip
