"""``pipeswarm simulate run``: a normal run folder out of simulated time."""

import errno
import json
import os
from pathlib import Path
from typing import Any

import pytest

from harness.cli import main
from harness.model import Outcome, Submission
from harness.model.errors import ExitCode
from harness.store.folder import RunFolder

BURST = ("--schedule", "burst", "--runs", "30")


def simulate(runs_dir: Path, *options: str, name: str = "run") -> tuple[int, RunFolder]:
    where = ("--runs-dir", str(runs_dir), "--run-name", name)
    code = main(["simulate", "run", *options, *where, "--quiet"])
    return code, RunFolder.open(runs_dir / name)


def content(folder: RunFolder) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.path.iterdir() if path.is_file()}


def report_of(folder: RunFolder) -> dict[str, Any]:
    report: dict[str, Any] = json.loads((folder.path / "report.json").read_bytes())
    return report


def test_a_simulated_test_is_a_run_folder_with_every_report(tmp_path: Path) -> None:
    code, folder = simulate(tmp_path, *BURST, "--slo", "p95(run.duration) < 10m")
    plan, report = folder.read_plan(), report_of(folder)
    assert code == ExitCode.OK
    assert (plan.simulated, plan.intended, plan.schedule["name"]) == (True, 30, "burst")
    assert report["validity"]["verdict"] == "VALID"
    assert report["ledger"]["succeeded"] == 30
    assert {"report.html", "report.md", "junit.xml", "schedule.csv", "scenarios.csv"} <= content(folder).keys()
    # The report made again from the folder is the same.
    before = content(folder)
    assert main(["report", str(folder.path), "--quiet"]) == ExitCode.OK
    assert content(folder) == before


def test_the_same_seed_gives_the_same_bytes_and_another_one_others(tmp_path: Path) -> None:
    first, again, other = (
        content(simulate(tmp_path / place, "--schedule", "poisson", "--rate", "2/s", "--for", "20s", "--seed", seed)[1])
        for place, seed in (("a", "1"), ("b", "1"), ("c", "2"))
    )
    # The manifest says how the test was called, and that names the folder.
    del first["manifest.json"], again["manifest.json"], other["manifest.json"]
    assert first.keys() == again.keys()
    assert {name for name in first if first[name] != again[name]} <= {"report.html", "report.json"}
    assert first["spans.jsonl"] != other["spans.jsonl"]


@pytest.mark.parametrize(
    "written",
    ["harness.store.files.replace", "harness.store.folder.Recorder.append", "harness.cli.look.rebuilding.write"],
)
def test_a_full_disk_is_named_and_nothing_is_left_there(
    tmp_path: Path, written: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(written, refuse)
    command = ["simulate", "run", *BURST, "--runs-dir", str(tmp_path), "--run-name", "run", "--quiet"]
    assert main(command) == ExitCode.BAD_CONFIG
    assert f"error: the disk is full: {tmp_path / 'run'} can't be written" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_an_injected_fault_is_diagnosed_by_its_name(tmp_path: Path) -> None:
    code, folder = simulate(
        tmp_path, "--schedule", "burst", "--runs", "120", "--fault", "store-full:1.2", "--slo", "failed_ratio < 0.01"
    )
    assert code == ExitCode.SLO_FAILED
    assert report_of(folder)["findings"][0]["name"] == "store-full"


def test_every_objective_counts(tmp_path: Path) -> None:
    code, folder = simulate(
        tmp_path, "--schedule", "burst", "--runs", "20", "--fault", "oom",
        "--slo", "failed_ratio < 0.01", "--slo", "p95(run.duration) < 1h",
    )  # fmt: skip
    assert folder.read_plan().slos == ("failed_ratio < 0.01", "p95(run.duration) < 1h")
    assert code == ExitCode.SLO_FAILED


def test_scenarios_are_taken_in_turn_and_names_stay_distinct(tmp_path: Path) -> None:
    table = tmp_path / "scenarios.csv"
    table.write_text("id,scenario_name,data_multiplier\n1,small,100\n2,large,9000\n")
    _, folder = simulate(tmp_path, "--schedule", "burst", "--runs", "5", "--scenarios", str(table))
    rows = sorted(folder.records(Submission), key=lambda row: row.seq)
    assert [row.run_name for row in rows] == ["1-small", "2-large", "1-small-2", "2-large-2", "1-small-3"]
    assert {row.outcome for row in rows} == {Outcome.ACCEPTED}
    assert (folder.path / "scenarios.csv").read_text() == table.read_text()


def test_the_reports_of_a_named_run_have_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["simulate", "run", *BURST, "--runs-dir", str(tmp_path), "--run-name", "nightly"])
    capsys.readouterr()
    (tmp_path / "nightly").rename(tmp_path / "elsewhere")
    main(["report", str(tmp_path / "elsewhere"), "--json"])
    assert json.loads(capsys.readouterr().out)["name"] == "nightly"


def test_without_report_only_the_records_are_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["simulate", "run", *BURST, "--runs-dir", str(tmp_path), "--run-name", "x", "--no-report", "--json"])
    assert json.loads(capsys.readouterr().out) == {"run": str(tmp_path / "x")}
    assert not (tmp_path / "x" / "report.html").exists()
    assert (tmp_path / "x" / "spans.jsonl").stat().st_size > 0


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--schedule", "concurrency"), "closed schedule"),
        (("--fault", "store-fulll"), "did you mean 'store-full'"),
        (("--profile", "moon"), "no simulated platform 'moon'"),
        (("--schedule", "constant", "--rate", "1/h", "--for", "1s"), "no arrival"),
    ],
)
def test_an_impossible_simulation_is_refused_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], expected: str
) -> None:
    code = main(["simulate", "run", *options, "--runs-dir", str(tmp_path / "runs")])
    assert code == ExitCode.BAD_CONFIG
    assert expected in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    "text",
    ["autoscaler: {scan_s: 0}", "api: {qps: 0}", "faults: [{name: nope}]", "steps: [{priority_class: urgent}]"],
)
def test_a_profile_with_a_mistake_leaves_no_folder(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile, runs_dir = tmp_path / "mine.yaml", tmp_path / "runs"
    profile.write_text(text)
    code = main(["simulate", "run", "--profile", str(profile), *BURST, "--runs-dir", str(runs_dir), "--quiet"])
    assert code == ExitCode.BAD_CONFIG
    assert "Traceback" not in capsys.readouterr().err
    assert not runs_dir.exists()


WORKFLOW = """
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {generateName: two-}
spec:
  entrypoint: main
  templates:
    - {name: main, steps: [[{name: first, template: work}], [{name: second, template: work}]]}
    - {name: work, container: {image: a}}
"""


def test_a_workflow_of_argo_is_simulated_and_reported(tmp_path: Path) -> None:
    (tmp_path / "workflow.yaml").write_text(WORKFLOW)
    code, folder = simulate(tmp_path, *BURST, "--workflow", str(tmp_path / "workflow.yaml"))
    report = report_of(folder)
    assert (code, folder.read_plan().target) == (ExitCode.OK, "argo")
    assert (report["validity"]["verdict"], report["ledger"]["succeeded"]) == ("VALID", 30)
    spans = (folder.path / "spans.jsonl").read_bytes()
    assert spans.count(b'"phase":"running"') == 60
    assert b'"task":"first"' in spans


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--workflow", "w.yaml", "--target", "kfp"), "--workflow is an option of --target argo"),
        (("--pipeline", "p.yaml", "--target", "argo"), "--pipeline is an option of --target kfp"),
        (("--target", "hetida"), "has no hetida"),
        (("--workflow", "missing.yaml"), "does not exist"),
    ],
)
def test_options_that_do_not_fit_the_target_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: tuple[str, ...], said: str
) -> None:
    assert main(["simulate", "run", *BURST, *options, "--runs-dir", str(tmp_path)]) == ExitCode.BAD_CONFIG
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("name: second, template: work", "name: second, template: none"), ("name: second", "name: first"),
        ("image: a}", "image: a}, unheard: 1"), ("entrypoint: main", "entrypoint: [1"), ("templates:", "other:"),
        ("steps: [[", "withItems: [["),
    ],
)  # fmt: skip
def test_a_workflow_that_can_not_run_is_refused_before_a_folder_is_made(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: str, said: str
) -> None:
    (tmp_path / "workflow.yaml").write_text(WORKFLOW.replace(change, said))
    options = ("--workflow", str(tmp_path / "workflow.yaml"), "--runs-dir", str(tmp_path / "runs"))
    assert main(["simulate", "run", *BURST, *options]) == ExitCode.BAD_CONFIG
    assert "Traceback" not in capsys.readouterr().err
    assert not list((tmp_path / "runs").glob("*"))
