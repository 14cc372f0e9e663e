import json

from harness.analysis.cost.resources import Resources
from harness.cli import main
from harness.cli.resources import current_resources
from harness.targets import kfp
from tests.analysis.cost.test_resources import measured
from tests.support.timelines import Story

TRAINING = kfp.EXAMPLE
MI = 2**20


def test_requests_of_a_compiled_pipeline_are_read():
    found = current_resources(TRAINING.read_bytes())
    assert found["train"] == Resources(1.0, 2.0, 1024 * MI, 1024 * MI)
    assert found["evaluate"].cpu_request == 0.25


def test_a_run_gets_its_lines_and_its_fit(tmp_path, capsys):
    folder = measured().write(tmp_path)
    folder.keep("pipeline.yaml", TRAINING.read_bytes())
    assert main(["resources", str(folder.path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [step["task"] for step in found["steps"]] == ["prepare", "train", "watch"]
    assert found["steps"][1]["now"]["cpu_request"] == 1.0
    assert found["fit_now"][0]["jobs"] == 4  # of 4 cores
    assert found["fit_then"][0]["jobs"] == 1  # train asks for 2.1 cores, watch for 50m
    assert main(["resources", str(folder.path)]) == 0
    assert 'train.set_cpu_request("2100m")' in capsys.readouterr().out


def test_a_run_without_measurements_says_what_is_missing(tmp_path, capsys):
    assert main(["resources", str(Story(intended=0).write(tmp_path).path)]) == 2
    assert "metrics-server" in capsys.readouterr().err


def test_simulated_time_is_not_told_to_install_what_would_not_help(tmp_path, capsys):
    options = ["--schedule", "burst", "--runs", "2", "--runs-dir", str(tmp_path), "--run-name", "r", "--no-report"]
    assert main(["simulate", "run", *options, "--quiet"]) == 0
    assert main(["resources", str(tmp_path / "r")]) == 2
    said = capsys.readouterr().err
    assert "simulate serve" in said
    assert "metrics-server" not in said
