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


def test_a_simulated_run_gets_advice_for_what_its_profile_uses(tmp_path, capsys):
    """`train` uses 1.5 cores, up to its limit of 2, and 300 MiB; `evaluate` would use twice its limit of 500m."""
    steps = (
        "steps: [{match: train, duration: 20s, cpu: 1500m, memory: 300Mi}, {match: evaluate, duration: 20s, cpu: 1}, "
        "{duration: 5s}]"
    )
    profile = tmp_path / "profile.yaml"
    profile.write_text(f"pools: [{{name: steps, cpu: 8, memory: 16Gi, initial: 3}}]\n{steps}\n")
    options = ["--schedule", "burst", "--runs", "12", "--runs-dir", str(tmp_path), "--run-name", "r", "--no-report"]
    assert main(["simulate", "run", "--profile", str(profile), *options, "--quiet"]) == 0
    assert main(["resources", str(tmp_path / "r"), "--json"]) == 0
    steps = {each["task"]: each for each in json.loads(capsys.readouterr().out)["steps"]}
    assert not [name for name in steps if name.endswith("-driver")]
    train, evaluate = steps["train"], steps["evaluate"]
    assert (train["pods"], train["cpu_most"], train["memory_most"]) == (12, 1.5, 300 * 2**20)
    assert train["throttled"] == {"share": 0.0, "by_periods": True}
    assert evaluate["throttled"] == {"share": 1.0, "by_periods": True}
    assert evaluate["advice"]["cpu_limit"] > evaluate["now"]["cpu_limit"]
    assert main(["resources", str(tmp_path / "r")]) == 0
    assert "throttled: share of the CFS periods" in capsys.readouterr().out
