import pytest

from harness.model import Burst, Concurrency, ConfigError, Constant, Level, Ramp, Replay, Spread, Stages
from harness.store import RunFolder
from tests.support.schedule_files import read_schedule


def write(tmp_path, text):
    path = tmp_path / "file"
    path.write_text(text)
    return path


def test_a_stage_is_described_by_the_options_of_its_schedule(tmp_path):
    path = write(
        tmp_path,
        "- {schedule: constant, rate: 2/s, for: 10m}\n"
        "- {schedule: ramp, rate: 1/s..5/s, for: 1m}\n"
        "- {schedule: burst, runs: 50, every: 5m, times: 2}\n"
        "- {schedule: spread, runs: 10, over: 1h, jitter: 0.5}\n",
    )
    assert read_schedule("stages", path) == Stages(
        (Constant(2.0, 600.0), Ramp(1.0, 5.0, 60.0), Burst(50, 300.0, 2), Spread(10, 3600.0, 0.5))
    )


def test_a_replay_takes_its_times_from_a_csv_or_from_a_run(tmp_path):
    path = write(tmp_path, "seq,due_s,tenant\n0,0.0,a\n1,2.5,b\n")
    assert read_schedule("replay", path) == Replay((0.0, 2.5), str(path), tenants=("a", "b"))
    path = write(tmp_path, "seq,due_s,tenant,scenario_id\n0,0.0,a,7\n1,2.5,b,7\n")
    assert read_schedule("replay", path) == Replay((0.0, 2.5), str(path), ("7", "7"), ("a", "b"))
    folder = RunFolder.create(tmp_path, "run")
    folder.replace("manifest.json", b"{}")
    folder.write_schedule([0.0, 1.5, 1.5])
    assert read_schedule("replay", folder.path).due_s == (0.0, 1.5, 1.5)


def test_a_missing_file_names_the_option(tmp_path):
    for kind in ("stages", "replay", "concurrency"):
        with pytest.raises(ConfigError, match="--schedule-file"):
            read_schedule(kind, tmp_path / "none")


def test_stages_of_a_closed_schedule_are_its_runs(tmp_path):
    path = write(tmp_path, "- {runs: 2}\n- {runs: 5}\n")
    found = read_schedule("concurrency", path)
    assert found == Concurrency((), runs=7, stages=(2, 5))
    assert Concurrency.from_mapping(found.to_mapping()) == found
    assert found.most_in_flight == 5


@pytest.mark.parametrize(
    "text", ["- {runs: 2}\n- {users: 5}\n", "- {runs: 0}\n", "- {runs: two}\n", "- {runs: 2, for: 1m}\n"]
)
def test_a_stage_is_a_number_of_runs(tmp_path, text):
    with pytest.raises(ConfigError, match="stage"):
        read_schedule("concurrency", write(tmp_path, text))


def test_levels_of_a_closed_schedule(tmp_path):
    path = write(tmp_path, "- {users: 20, for: 10m}\n- {users: 5}\n")
    assert read_schedule("concurrency", path, runs=9) == Concurrency((Level(20, 600.0), Level(5)), runs=9)


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        ("stages", "a: [", "not valid YAML"),
        ("stages", "", "is not a list of stages"),
        ("stages", "schedule: burst", "is not a list of stages"),
        ("stages", "- {runs: 5}", "stage 1: it names no schedule"),
        (
            "stages",
            "- {schedule: burst, runs: 5}\n- {schedule: constant, rate: 1/s}",
            "stage 2: constant needs 'for'",
        ),
        ("stages", "- {schedule: burst, runs: many}", "stage 1, runs: 'many' is not a whole number"),
        ("stages", "- {schedule: burst, runs: 5, colour: red}", "stage 1: burst has no 'colour'"),
        ("stages", "- {schedule: ramp, rate: 5/s, for: 1m}", "stage 1, rate: '5/s' is not a ramp"),
        ("replay", "seq,when\n0,1\n", "the column 'due_s' is missing"),
        ("replay", "seq,due_s\n0,soon\n", "line 2: 'soon' is not a number"),
        ("replay", "seq,due_s\n0,0\n1,nan\n", "line 3: 'nan' is not a number"),
        ("replay", "seq,due_s\n0,inf\n", "line 2: 'inf' is not a number"),
        ("replay", "seq,due_s\n", "has no arrivals"),
        ("replay", "seq,due_s\n0,5\n1,2\n", "go back in time"),
        ("concurrency", "users: 3", "is not a list of levels"),
        ("concurrency", "- {rate: 3}", "level 1: it is not a level"),
        ("concurrency", "- {users: 3}\n- {users: many}", "level 2: 'many' is not a whole number"),
        ("concurrency", "- {users: 3, for: soon}", "level 1: 'soon' is not a duration"),
    ],
)
def test_an_error_names_the_file_and_the_place_in_it(tmp_path, kind, text, expected):
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as raised:
        read_schedule(kind, path)
    assert expected in raised.value.message
    assert str(path) in raised.value.message
