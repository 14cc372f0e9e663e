"""What the values of their options make of schedules, and what is refused in which words."""

import pytest

from harness.model import Burst, ConfigError, Constant, Poisson, Ramp, Replay, Spread, Stages
from harness.model.schedules import find_kind, kinds, schedule_options
from harness.model.schedules.schedule import Document

GIVEN = {"scenarios": 12, "users": 4, "spawn-rate": 2.0}


def parsed(name, **values):
    return find_kind(name).parse(GIVEN | values)


@pytest.mark.parametrize(
    ("name", "values", "schedule"),
    [
        ("spread", {"runs": None, "over": 60.0, "jitter": 0.2}, Spread(12, 60.0, 0.2)),
        ("spread", {"runs": 5, "over": 60.0}, Spread(5, 60.0)),
        ("spread", {"runs": 5, "over": 60.0, "jitter": None}, Spread(5, 60.0, 0.0)),
        ("burst", {"runs": None}, Burst(12)),
        ("burst", {"runs": 5, "every": None, "times": None, "ramp-in": None}, Burst(5)),
        ("burst", {"runs": 5, "every": 30.0, "times": 3, "ramp-in": 2.0}, Burst(5, 30.0, 3, 2.0)),
        ("constant", {"rate": 2.0, "for": 30.0}, Constant(2.0, 30.0)),
        ("poisson", {"rate": 2.0, "for": 30.0}, Poisson(2.0, 30.0)),
        ("ramp", {"rate": (1.0, 5.0), "for": 30.0}, Ramp(1.0, 5.0, 30.0)),
    ],
)
def test_values_make_a_schedule(name, values, schedule):
    assert parsed(name, **values) == schedule


def test_a_ramp_is_written_as_two_rates():
    (rate, _) = find_kind("ramp").OPTIONS
    assert rate.read("1/s..120/m") == (1.0, 2.0)
    with pytest.raises(ConfigError) as refused:
        rate.read("1/s")
    assert str(refused.value) == "--rate: '1/s' is not a ramp\n  → write two rates, as 1/s..10/s"


def staged(*content):
    return parsed("stages", **{"schedule-file": Document("f", list(content))})


def test_stages_are_read_by_the_options_of_their_schedules():
    assert staged(
        {"schedule": "burst", "runs": 5, "every": None},
        {"schedule": "poisson", "rate": "120/m", "for": 30},
        {"schedule": "ramp", "rate": "1/s..2/s", "for": "1m"},
    ) == Stages((Burst(5), Poisson(2.0, 30.0), Ramp(1.0, 2.0, 60.0)))


ONE_OF = "give schedule: one of spread, burst, constant, poisson, ramp"
FILE = "the file is missing\n  → give --schedule-file FILE"


@pytest.mark.parametrize(
    ("name", "document", "said"),
    [
        ("stages", None, f"{FILE}, a YAML list of schedules"),
        ("stages", Document("f", {}), "f is not a list of stages\n  → begin each with '- schedule: …'"),
        ("stages", Document("f", []), "f is not a list of stages\n  → begin each with '- schedule: …'"),
        ("stages", Document("f", [5]), f"f, stage 1: it names no schedule\n  → {ONE_OF}"),
        ("stages", Document("f", [{"schedule": 5}]), f"f, stage 1: it names no schedule\n  → {ONE_OF}"),
        ("stages", Document("f", [{"schedule": "stages"}]), f"f, stage 1: it names no schedule\n  → {ONE_OF}"),
        (
            "stages",
            Document("f", [{"schedule": "burst", "runs": 5}, {"schedule": "constant", "rate": 1}]),
            "f, stage 2: constant needs 'for'\n  → add it",
        ),
        (
            "stages",
            Document("f", [{"schedule": "burst", "runs": 0}]),
            "f, stage 1: 'runs' is 0\n  → it must be above 0",
        ),
        (
            "stages",
            Document("f", [{"schedule": "burst", "runs": 5, "colour": "red", "size": 1}]),
            "f, stage 1: burst has no 'colour'\n  → its options: every, ramp-in, runs, times",
        ),
        (
            "stages",
            Document("f", [{"schedule": "burst", "runs": "many"}]),
            "f, stage 1, runs: 'many' is not a whole number\n  → write it in digits",
        ),
        ("replay", None, f"{FILE} or a run folder"),
        (
            "replay",
            Document("f", [(2, {"due_s": "0"}), (3, {"due_s": "soon"})]),
            "f, line 3: 'soon' is not a number of seconds\n  → correct due_s",
        ),
        (
            "replay",
            Document("f", [(2, {"due_s": "inf"})]),
            "f, line 2: 'inf' is not a number of seconds\n  → correct due_s",
        ),
        ("replay", Document("f", []), "f: the schedule has no arrivals\n  → give a file with one row per arrival"),
        (
            "replay",
            Document("f", [(2, {"due_s": "3"}), (3, {"due_s": "2"})]),
            "f: the due times go back in time\n  → sort the file by due_s, from 0 on",
        ),
    ],
)
def test_another_file_is_refused_with_place_and_what_to_do(name, document, said):
    with pytest.raises(ConfigError) as refused:
        parsed(name, **{"schedule-file": document})
    assert str(refused.value) == said


@pytest.mark.parametrize(
    ("rows", "schedule"),
    [
        ([{"due_s": "0"}, {"due_s": 2.5}], Replay((0.0, 2.5), "f")),
        (
            [{"due_s": "0", "scenario_id": "7", "tenant": ""}, {"due_s": "1", "scenario_id": "", "tenant": ""}],
            Replay((0.0, 1.0), "f", ("7", "")),
        ),
        (
            [{"due_s": "0", "scenario_id": "", "tenant": "a"}, {"due_s": "1"}],
            Replay((0.0, 1.0), "f", (), ("a", "")),
        ),
    ],
)
def test_a_replay_has_the_scenarios_and_tenants_that_its_file_names(rows, schedule):
    assert parsed("replay", **{"schedule-file": Document("f", list(enumerate(rows, 2)))}) == schedule


def test_the_default_kind_comes_first():
    assert list(kinds()) == ["spread", "burst", "concurrency", "constant", "poisson", "ramp", "replay", "stages"]


def test_an_option_of_several_kinds_is_shown_once_with_what_it_means_to_each():
    helps = {option.name: option.help for option in schedule_options()}
    assert helps["rate"] == (
        "constant, poisson: arrival rate, as 2/s, 120/m or 500/h · ramp: first and last arrival rate, as 1/s..10/s"
    )
    assert helps["jitter"] == "spread: delays each arrival by up to this share of the spacing"
