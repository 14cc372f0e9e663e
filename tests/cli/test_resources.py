import json

from harness.cli import main
from harness.targets import kfp
from tests.support.stories import measured
from tests.support.timelines import Story

TRAINING = kfp.EXAMPLE


def test_a_run_gets_advice_and_the_runs_per_node(tmp_path, capsys):
    folder = measured().write(tmp_path)
    folder.keep("pipeline.yaml", TRAINING.read_bytes())
    assert main(["resources", str(folder.path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [step["task"] for step in found["steps"]] == ["prepare", "train", "watch"]
    assert found["steps"][1]["now"]["cpu_request"] == 1.0
    assert found["fit_now"][0]["jobs"] == 4  # of 4 cores
    assert found["fit_then"][0]["jobs"] == 1  # train asks for 2.1 cores, watch for 50m
    assert main(["resources", str(folder.path)]) == 0
    told = capsys.readouterr().out
    assert 'train.set_cpu_request("2100m")' in told
    assert "OOM: share of pods expected to need more memory than the advice" in told
    assert found["steps"][1]["oom_share"] < 0.001


def test_without_measurements_the_error_names_what_is_missing(tmp_path, capsys):
    assert main(["resources", str(Story(intended=0).write(tmp_path).path)]) == 2
    assert "metrics-server" in capsys.readouterr().err


def test_for_simulated_time_metrics_server_is_not_suggested(tmp_path, capsys):
    options = ["--schedule", "burst", "--runs", "2", "--runs-dir", str(tmp_path), "--run-name", "r", "--no-report"]
    assert main(["simulate", "run", *options, "--quiet"]) == 0
    assert main(["resources", str(tmp_path / "r")]) == 2
    message = capsys.readouterr().err
    assert "simulate serve" in message
    assert "metrics-server" not in message
