"""The project in examples/plugins, installed: Pipeswarm finds each of its plugins, and a load test runs with them."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from itertools import pairwise
from pathlib import Path

import pytest

from harness.collectors.collector import sources
from harness.detectors.diagnosis import detectors
from harness.model.schedules import Burst, Schedule, Stages, kinds
from harness.targets.discovery import find, names
from tests.support.e2e import locust  # noqa: F401  # a fixture
from tests.support.job_service import JobService
from tests.support.servers import serving

PROJECT = Path(__file__).parents[2] / "examples/plugins"
ROOT = Path(__file__).parents[2]


@pytest.fixture
def site(tmp_path):
    """A folder with the package and its metadata, as `pip install --target` leaves them."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    shutil.copytree(PROJECT / "pipeswarm_jobs", tmp_path / "site/pipeswarm_jobs")
    info = tmp_path / f"site/pipeswarm_jobs-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.4\nName: {project['name']}\nVersion: {project['version']}\n")
    groups = [
        "\n".join([f"[{group}]", *(f"{name} = {value}" for name, value in entries.items())])
        for group, entries in project["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("\n".join(groups) + "\n")
    return tmp_path / "site"


@pytest.fixture
def installed(site, monkeypatch):
    monkeypatch.syspath_prepend(str(site))
    yield
    for module in [name for name in sys.modules if name.partition(".")[0] == "pipeswarm_jobs"]:
        sys.modules.pop(module)


def test_contributing_counts_the_files_of_an_addition_and_names_its_contract():
    """One module of the example for each kind, as the table in CONTRIBUTING.md says."""
    table = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    counts = re.findall(r"^\| (\w+) \| (\d+) in `([\w/]+)`.* \| `([\w/.]+)`[^|]* \|$", table, re.MULTILINE)
    groups = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["entry-points"]
    assert {f"pipeswarm.{kind}s" for kind, *_ in counts} == set(groups)
    for kind, count, room, contract in counts:
        modules = {entry.partition(":")[0] for entry in groups[f"pipeswarm.{kind}s"].values()}
        assert len(modules) == int(count)
        assert all((PROJECT / f"{module.replace('.', '/')}.py").is_file() for module in modules)
        assert (ROOT / room).is_dir()
        assert (ROOT / contract).is_file()


def test_each_plugin_is_found_by_its_name(installed):
    assert "jobs" in names()
    assert find("jobs").HOST_VARIABLE == "JOBS_ENDPOINT"
    assert "job_queue" in sources()
    assert "growing-queue" in [detector.NAME for detector in detectors()]
    (schedule,) = entry_points(group="pipeswarm.schedules", name="sawtooth")
    assert schedule.load().__name__ == "Sawtooth"
    assert kinds.__wrapped__()["sawtooth"] is schedule.load()


def test_its_schedule_keeps_the_contract_of_schedules(installed):
    (entry,) = entry_points(group="pipeswarm.schedules", name="sawtooth")
    schedule: Schedule = entry.load()(peak=4.0, period_s=10.0, times=2)
    due_s = list(schedule.offsets(seed=7))
    assert due_s == list(schedule.offsets(seed=7))
    assert len(due_s) == 40
    assert all(earlier <= later for earlier, later in pairwise(due_s))
    assert due_s[0] >= 0
    assert due_s[-1] <= schedule.length_s == 20.0
    assert sum(due < 5 for due in due_s) == 5, "a quarter of a tooth's arrivals in its first half"
    assert Stages((Burst(1), schedule)).length_s == 20.0


def test_its_options_are_listed(site):
    done = subprocess.run(
        [sys.executable, "-P", "-m", "harness.cli", "load", "jobs", "--options"], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": f"{site}:{ROOT}"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "--queue" in done.stdout


def test_a_load_test_runs_with_them_and_its_report_has_the_finding(site, locust, tmp_path):  # noqa: F811
    shutil.copy(PROJECT / "load.py", tmp_path)
    with serving(JobService(job_s=0.2)) as address:
        finished = locust.headless(
            "-f", str(tmp_path / "load.py"), "--schedule", "sawtooth", "--peak", "20/s", "--period", "4s", "--collector-option", "job-queue-every=200ms", "--drain", "30s", JOBS_ENDPOINT=address,
            PYTHONPATH=f"{site}:{ROOT}", KUBECONFIG=str(tmp_path / "none"), within=("env",),  # entry points of its own
        )  # fmt: skip
    assert finished.code in {0, 4}, finished.err + finished.out
    report = finished.report()
    assert (report["ledger"]["accepted"], report["ledger"]["in_flight"]) == (40, 0)
    assert "growing-queue" in [finding["name"] for finding in report["findings"]]
    assert (finished.folder / "observer.log").read_text().count("Traceback") == 0
