"""The orchestrator at the served simulated platform; its one step runs as a process of this machine."""

import json
import os
import re
import subprocess
import urllib.request

from harness.cli import main
from tests.support.e2e import BIN, CLEAN, PIPELINE, wait_for
from tests.support.punctuality import skip_if_the_machine_is_late

ROWS = "id,scenario_name\n7,north\n8,south\n9,north\n"


def asked(url):
    with urllib.request.urlopen(url) as answer:
        return json.load(answer)


def step_of(url, run):
    """The orchestrator's step as its launcher is told it: container, and the values of the run's parameters."""
    found = asked(f"{url}/apis/v2beta1/runs/{run}")
    named = found["pipeline_version_reference"]
    version = asked(f"{url}/apis/v2beta1/pipelines/{named['pipeline_id']}/versions/{named['pipeline_version_id']}")
    (executor,) = version["pipeline_spec"]["deploymentSpec"]["executors"].values()
    return executor["container"], found["runtime_config"]["parameters"]


def launched(container, parameters, place):
    """The step's command with KFP's placeholders filled in: values, and places for the outputs."""

    def fill(found):
        kind, name = found[1], found[2]
        return str(parameters[name]) if kind == "inputs.parameters" else str(place / name)

    pattern = re.compile(
        r"\{\{\$\.(inputs\.parameters|outputs\.artifacts|outputs\.parameters)\['(\w+)'\](?:\.\w+)?\}\}"
    )
    words = [pattern.sub(fill, word) for word in (*container["command"], *container["args"])]
    assert not any("{{" in word for word in words)
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(words, env={**CLEAN, "PATH": path}, cwd=place, capture_output=True, text=True, check=False)


def test_its_step_starts_a_run_for_each_row_and_leaves_the_run_folder(platform, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.csv").write_text(ROWS)
    arguments = [
        "orchestrate", "--scenarios", "s.csv", "--pipeline", PIPELINE, "--image", "registry.example/pipeswarm:1",
        "--host", platform.url, "--inside-host", platform.url, "--schedule", "spread", "--over", "1s",
        "--experiment", "nightly", "--slo", "p95(run.duration) < 1ms", "--undecided", "fail", "--json",
    ]  # fmt: skip
    assert main(arguments) == 0
    run = json.loads(capsys.readouterr().out)["run"]
    assert [each.name for each in tmp_path.iterdir()] == ["s.csv"]
    container, parameters = step_of(platform.url, run)
    assert container["image"] == "registry.example/pipeswarm:1"
    outputs = tmp_path / "outputs"
    outputs.mkdir()
    done = launched(container, parameters, outputs)
    assert done.returncode == 0, done.stdout + done.stderr  # the test has a verdict: KFP keeps the outputs
    if (outputs / "exit_code").read_text() == "4":
        skip_if_the_machine_is_late(last=True)
    assert (outputs / "exit_code").read_text() == "3"
    assert (outputs / "report").read_bytes() == (outputs / "run/report.html").read_bytes()
    rows = [json.loads(line) for line in (outputs / "run/submissions.jsonl").read_text().splitlines()]
    assert [row["scenario_id"] for row in rows] == ["7", "8", "9"]
    assert len({row["sent_at"] // 10**8 for row in rows}) > 1, "they are sent on a schedule"
    found = asked(f"{platform.url}/apis/v2beta1/runs?page_size=100")["runs"]
    names = sorted(each["display_name"] for each in found if each["run_id"] != run)
    assert names == ["7-north", "8-south", "9-north"]
    wait_for(lambda: asked(f"{platform.url}/apis/v2beta1/runs/{run}")["state"] == "SUCCEEDED")
