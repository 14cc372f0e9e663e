"""The main task of a user: load a served platform, headless, and read the verdict."""

import json
import subprocess
from pathlib import Path

import pytest

from harness.store import RunFolder
from tests.support.e2e import BIN, FEW, PIPELINE, QUICK, Locust


def pipeswarm(*arguments):
    return subprocess.run(
        [BIN / "pipeswarm", *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False
    )


def documents(folder):
    names = ("report.html", "report.json", "report.md", "junit.xml")
    return {name: (folder / name).read_bytes() for name in names}


@pytest.fixture(scope="module")
def burst(shared_platform, tmp_path_factory):
    """A finished load test, whose scenarios were generated."""
    return Locust(tmp_path_factory.mktemp("burst")).headless(
        "--host", shared_platform.url, "--pipeline", PIPELINE, "--schedule", "burst", "--runs", "20",
        "--prepare", "retries=5,label=test=burst",
        "--slo", "failed_ratio < 0.01", KUBECONFIG=shared_platform.kubeconfig,
    )  # fmt: skip


def test_a_burst_against_a_served_platform_is_valid_and_reported(burst):
    assert burst.code == 0, burst.err + burst.out
    report = burst.report()
    assert report["validity"] == {**report["validity"], "verdict": "VALID", "reasons": []}
    assert report["ledger"]["intended"] == report["ledger"]["succeeded"] == 20
    assert sorted(row["seq"] for row in burst.rows()) == list(range(20))
    assert "exit code 0" in burst.out
    assert str(burst.folder / "report.html") in burst.out
    frames = RunFolder.open(burst.folder)
    assert frames.read_plan().digests.keys() == {"schedule", "scenarios", "pipeline"}


def test_the_run_folder_has_the_pipeline_as_given_and_as_prepared(burst):
    assert (burst.folder / "pipeline-original.yaml").read_bytes() == Path(PIPELINE).read_bytes()
    prepared = (burst.folder / "pipeline.yaml").read_text()
    assert "maxRetryCount: 5" in prepared
    assert "test: burst" in prepared


def test_a_sealed_run_is_reported_again_byte_for_byte_without_a_platform(burst):
    first = documents(burst.folder)
    again = pipeswarm("report", burst.folder)
    assert again.returncode == burst.code == 0, again.stderr
    assert documents(burst.folder) == first
    told = pipeswarm("report", burst.folder, "--json")
    assert json.loads(told.stdout) == json.loads(first["report.json"])
    assert pipeswarm("report", burst.folder, "--quiet").stdout == ""


def test_the_pipeline_is_uploaded_only_once_for_several_tests(locust, shared_platform):
    for _ in range(2):
        finished = locust.headless("--host", shared_platform.url, "--pipeline", PIPELINE, "--runs", "1")
        assert [row["outcome"] for row in finished.rows()] == ["accepted"], finished.err
    plans = [RunFolder.open(path).read_plan() for path in sorted((locust.place / "runs").iterdir())]
    assert len({plan.target_options["version_id"] for plan in plans}) == 1


@pytest.fixture(scope="module")
def known(burst, shared_platform):
    """Options for the pipeline that the burst has uploaded."""
    pipeline_id = RunFolder.open(burst.folder).read_plan().target_options["pipeline_id"]
    return ("--host", shared_platform.url, "--pipeline-id", pipeline_id)


def test_scenarios_are_checked_against_the_inputs_of_an_existing_pipeline(locust, known, tmp_path):
    (tmp_path / "bad.csv").write_text("id,scenario_name,colour\n1,a,red\n")
    refused = locust.headless(*known, "--scenarios", str(tmp_path / "bad.csv"))
    assert refused.code == 2
    assert "column colour" in refused.err


def test_an_existing_pipeline_is_run_by_its_id_and_without_kubernetes_not_everything_is_judged(locust, known, tmp_path):
    (tmp_path / "good.csv").write_text("id,scenario_name,data_multiplier\n1,a,4000\n2,b,6000\n")
    finished = locust.headless(
        *known, "--scenarios", str(tmp_path / "good.csv"), "--over", "1s", KUBECONFIG=str(tmp_path / "none")
    )
    assert finished.code == 0, finished.err + finished.out
    assert [row["run_name"] for row in finished.rows()] == ["1-a", "2-b"]
    assert "warning: the cluster can't be observed" in finished.err
    assert finished.report()["not_judged"]


def test_locusts_time_limit_does_not_drain(locust):
    finished = locust.headless(
        "--simulate", QUICK, *FEW, "--schedule", "constant", "--rate", "2/s", "--for", "10m", "-t", "6s", timeout=90
    )
    assert finished.code == 4, finished.err
    assert len(finished.rows()) == 1200


def test_two_processes_send_every_arrival_exactly_once(locust, shared_platform):
    finished = locust.headless(
        "--processes", "2", "--host", shared_platform.url, "--pipeline", PIPELINE, *FEW, "--schedule", "spread",
        "--runs", "40", "--over", "4s", KUBECONFIG=shared_platform.kubeconfig,
    )  # fmt: skip
    assert finished.code == 0, finished.err + finished.out
    rows = finished.rows()
    assert sorted(row["seq"] for row in rows) == list(range(40))
    assert {row["worker"] for row in rows} == {0, 1}
    assert all(row["worker"] == row["seq"] % 2 for row in rows)
