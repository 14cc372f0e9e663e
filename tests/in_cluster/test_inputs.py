import pytest

from harness.in_cluster.inputs import Inputs, collect, config_of
from harness.model.errors import ConfigError
from harness.targets.discovery import find

KFP = find("kfp")


def collected(*given, config=None):
    return collect(given, config, KFP, "/in", "/got")


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.csv").write_text("id,scenario_name\n1,a\n")
    (tmp_path / "p.yaml").write_text("a: 1\n")
    return tmp_path


@pytest.mark.parametrize("given", [("--scenarios", "s.csv"), ("--scenarios=s.csv",)])
def test_a_file_is_sent_and_named_by_its_place_in_the_pod(given):
    found = collected("--runs", "5", *given, "--host", "http://x")
    assert found == Inputs(
        ("--runs", "5", "--scenarios", "/in/scenarios.csv", "--host", "http://x"),
        {"scenarios.csv": b"id,scenario_name\n1,a\n"},
    )


def test_an_object_is_fetched_and_not_read_here():
    found = collected("--pipeline", "s3://bucket/folder/p.yaml")
    assert found == Inputs(
        ("--pipeline", "/got/pipeline.yaml"), objects={"/got/pipeline.yaml": "s3://bucket/folder/p.yaml"}
    )


def test_a_profile_named_by_a_word_is_no_file():
    assert collected("--simulate", "demo") == Inputs(("--simulate", "demo"))


def test_of_a_baseline_folder_the_report_is_sent(place):
    (place / "old").mkdir()
    (place / "old/report.json").write_text("{}")
    assert collected("--baseline", "old") == Inputs(("--baseline", "/in/baseline.json"), {"baseline.json": b"{}"})


def test_files_of_a_configuration_are_sent_unless_the_command_line_names_others(place):
    config = place / "pipeswarm.toml"
    config.write_text('[tool.locust]\nscenarios = "s.csv"\npipeline = "old.yaml"\nruns = 3\n')
    found = collected("--pipeline", "p.yaml", config=config)
    assert found.options == (
        "--config", "/in/pipeswarm.toml", "--scenarios", "/in/scenarios.csv", "--pipeline", "/in/pipeline.yaml",
    )  # fmt: skip
    assert set(found.files) == {"pipeswarm.toml", "scenarios.csv", "pipeline.yaml"}


def test_a_configuration_that_is_named_replaces_the_default_one(place):
    (place / "other.toml").write_text("[tool.locust]\nruns = 3\n")
    given = ("--config", "other.toml", "--seed", "1")
    assert config_of(given).name == "other.toml"
    assert collected(*given, config=place / "none.toml").options == ("--config", "/in/other.toml", "--seed", "1")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("--scenarios", "nope.csv"), "--scenarios nope.csv does not exist"),
        (("--scenarios",), "--scenarios names no file"),
        (("--schedule-file", "."), "--schedule-file .: a folder can't be sent"),
        (("--scenarios", "large.csv"), "--scenarios: large.csv is larger than 1 MiB"),
        (("--scenarios", "half.csv", "--pipeline", "half.yaml"), "the files are 1.2 MiB, a ConfigMap holds 1 MiB"),
        (("--config", "p.yaml"), "p.yaml is not a configuration"),
    ],
)
def test_what_can_not_be_sent_is_refused(place, given, said):
    for name, size in (("large.csv", 2**20 + 1), ("half.csv", 600 * 2**10), ("half.yaml", 600 * 2**10)):
        (place / name).write_bytes(b"x" * size)
    with pytest.raises(ConfigError) as refused:
        collected(*given)
    assert said in refused.value.message
    assert ("s3://" in refused.value.hint) == ("MiB" in said)
