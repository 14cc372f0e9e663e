import pytest
import yaml

from harness.cli import main
from tests.support.e2e import PIPELINE

CALL = ["orchestrate", "--image", "i:1", "--pipeline", PIPELINE]


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("KF_PIPELINES_ENDPOINT", raising=False)
    (tmp_path / "s.csv").write_text("id,scenario_name,data_multiplier\n1,a,5\n")
    return tmp_path


def executors(capsys):
    return yaml.safe_load(capsys.readouterr().out)["deploymentSpec"]["executors"]


def test_the_step_is_given_the_options_of_the_load_test(capsys):
    assert main([
        *CALL, "--scenarios", "s.csv", "--dry-run", "--schedule", "burst", "--slo", "failed_ratio < 0.1",
        "--slo", "p95(run.duration) < 1m", "--yes", "--namespace", "ml", "--memory", "4Gi",
    ]) == 0  # fmt: skip
    container = executors(capsys)["exec-load-test"]["container"]
    load = container["args"][container["args"].index("--") + 1 :]
    assert load == [
        "pipeswarm", "load", "kfp", "--host", "http://ml-pipeline.kubeflow:8888", "--schedule", "burst",
        "--slo", "failed_ratio < 0.1", "--slo", "p95(run.duration) < 1m", "--yes", "--namespace", "ml",
        "--pipeline-id", "PIPELINE-ID", "--version-id", "VERSION-ID",
    ]  # fmt: skip
    assert container["resources"]["resourceMemoryLimit"] == "4Gi"


def test_scenarios_in_an_object_store_are_imported_by_the_platform(capsys):
    assert main([*CALL, "--scenarios", "s3://bucket/s.csv", "--dry-run"]) == 0
    found = executors(capsys)
    (importer,) = (each["importer"] for each in found.values() if "importer" in each)
    assert importer["reimport"] is True
    (step,) = (each["container"] for each in found.values() if "container" in each)
    assert step["args"][:2] == ["--file", "{{$.inputs.artifacts['scenarios'].path}}"]


def test_in_a_multi_user_installation_the_step_gets_a_token(capsys):
    assert main([*CALL, "--scenarios", "s.csv", "--dry-run", "--kubeflow-token"]) == 0
    spec, platform = yaml.safe_load_all(capsys.readouterr().out)
    pod = platform["platforms"]["kubernetes"]["deploymentSpec"]["executors"]["exec-load-test"]
    assert pod["podMetadata"]["labels"] == {"access-ml-pipeline": "true"}
    args = spec["deploymentSpec"]["executors"]["exec-load-test"]["container"]["args"]
    assert args[args.index("--token-file") + 1] == "/var/run/secrets/kubeflow/pipelines/token"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--scenarios", "s.csv"], "no address of KFP\n  → give --host, or set KF_PIPELINES_ENDPOINT"),
        (["--scenarios", "none.csv", "--host", "http://x"], "none.csv"),
        (["--scenarios", "wrong.csv", "--host", "http://x"], "wrong.csv"),
        (["--scenarios", "s.csv", "--host", "http://x", "--runs", "five"], "--runs: 'five' is not a whole number"),
        (["--scenarios", "large.csv", "--host", "http://x"], "compressed, a parameter holds 96 KiB"),
    ],
)
def test_what_can_not_work_is_refused_before_the_platform_is_asked(given, said, capsys, place):
    (place / "wrong.csv").write_text("id,scenario_name,data_multiplier\n1,a,many\n")
    noise = "\n".join(f"{n},{n * 2654435761 % 2**64:x}{n * 40503 % 2**32:x}" for n in range(1, 10_001))
    (place / "large.csv").write_text(f"id,scenario_name\n{noise}\n")
    assert main([*CALL, *given]) == 2
    assert said in capsys.readouterr().err
