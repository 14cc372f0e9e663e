"""The templates for CI do what they say: nights against a served platform, without an installation."""

import json
import os
import shutil
import subprocess

import pytest

from tests.support.ci_templates import GITHUB, GITLAB
from tests.support.e2e import BIN, CLEAN, ROOT
from tests.support.injection.packages import Task, pipeline
from tests.support.punctuality import skip_if_the_machine_is_late


@pytest.fixture
def job(platform, tmp_path):
    """Runs a script as CI does, with fewer runs within seconds; nothing is installed."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/pip").symlink_to("/bin/true")
    (tmp_path / "pipeline.yaml").write_bytes(pipeline([Task("train")]))
    shutil.copy(ROOT / "constraints.txt", tmp_path)
    fixed = {"PATH": f"{tmp_path / 'bin'}:{BIN}:{os.environ['PATH']}", "PLATFORM_HOST": platform.url}

    def run(steps, count, objective="p95(run.duration) < 20m", **variables):
        code, said = 0, ""
        for script, always in steps:  # each is a process of its own
            if code and not always:
                continue
            shorter = script.replace("--runs 100 --over 30m", f"--runs {count} --over 2s").replace(
                "p95(run.duration) < 20m", objective
            )
            done = subprocess.run(
                ["bash", "-eo", "pipefail", "-c", shorter], cwd=tmp_path, env=CLEAN | fixed | variables, text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
            )  # fmt: skip
            if "arrivals left late" in done.stdout:
                skip_if_the_machine_is_late(last=True)
            code, said = code or done.returncode, said + done.stdout
        return code, said

    return tmp_path, run


# What GitHub runs, and whether after a failure, too.
GITHUB_STEPS = [
    (step["run"], step.get("if") == "${{ !cancelled() }}") for step in GITHUB["jobs"]["load"]["steps"] if "run" in step
]
GITLAB_STEPS = [("\n".join(GITLAB["load-test"]["script"]), False)]


def test_a_night_on_github_keeps_its_report_and_is_the_baseline_of_the_next(job):
    place, run = job
    names = {"GITHUB_RUN_ATTEMPT": "1", "GITHUB_STEP_SUMMARY": "summary.md"}
    for night in ("1", "2"):
        shutil.rmtree(place / "runs", ignore_errors=True)  # each job begins in a fresh checkout
        code, said = run(GITHUB_STEPS, 60, GITHUB_RUN_ID=night, **names)
        assert code == 0, said
    assert {each.parent.name for each in place.glob("history/runs/*/report.json")} == {"night-1-1", "night-2-1"}
    assert (place / "history/baseline.json").read_bytes() == (place / "runs/night-2-1/report.json").read_bytes()
    first, second = (json.loads((place / f"history/runs/night-{k}-1/report.json").read_text()) for k in (1, 2))
    assert second["baseline"]["name"] == first["name"]
    assert f"Baseline `{first['name']}`" in (place / "summary.md").read_text()


def test_a_night_on_gitlab_that_misses_an_objective_is_kept_and_no_baseline(job):
    place, run = job
    code, said = run(GITLAB_STEPS, 5, "p95(run.duration) < 1ms", CI_JOB_ID="1")
    assert code == 3, said
    assert (place / "history/runs/night-1/report.json").is_file()
    assert not (place / "history/baseline.json").exists()
    code, said = run(GITLAB_STEPS, 30, CI_JOB_ID="2")
    assert code == 0, said
    assert (place / "history/baseline.json").read_bytes() == (place / "runs/night-2/report.json").read_bytes()


@pytest.mark.soak  # GitLab's above is tried every time
def test_a_night_on_github_that_misses_an_objective_is_kept_and_no_baseline(job):
    place, run = job
    names = {"GITHUB_RUN_ID": "1", "GITHUB_RUN_ATTEMPT": "1", "GITHUB_STEP_SUMMARY": "summary.md"}
    code, said = run(GITHUB_STEPS, 5, "p95(run.duration) < 1ms", **names)
    assert code == 3, said
    assert (place / "history/runs/night-1-1/report.json").is_file()
    assert not (place / "history/baseline.json").exists()
    assert "SLO missed" in (place / "summary.md").read_text()


@pytest.mark.parametrize("steps", [GITHUB_STEPS, GITLAB_STEPS], ids=["github", "gitlab"])
def test_a_night_without_a_platform_keeps_nothing_and_ends_with_what_was_wrong(job, steps):
    place, run = job
    names = {"GITHUB_RUN_ID": "1", "GITHUB_RUN_ATTEMPT": "1", "CI_JOB_ID": "1"}
    code, said = run(steps, 5, PLATFORM_HOST="http://127.0.0.1:9", **names)
    assert code == 5, said
    assert said.count("error:") == 1
    assert not (place / "history").exists()
