"""The main task of a user: load a served platform, headless, and read the verdict."""

import json
import subprocess

from harness.store import RunFolder
from tests.support.e2e import BIN, QUICK, ROOT

PIPELINE = str(ROOT / "harness/targets/training.yaml")


def pipeswarm(*arguments):
    return subprocess.run(
        [BIN / "pipeswarm", *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False
    )


def documents(folder):
    names = ("report.html", "report.json", "report.md", "junit.xml")
    return {name: (folder / name).read_bytes() for name in names}


def test_a_burst_against_a_served_platform_is_valid_and_reported(locust, platform):
    finished = locust.headless(
        "--host", platform.url, "--pipeline", PIPELINE, "--schedule", "burst", "--runs", "20",
        "--slo", "failed_ratio < 0.01", KUBECONFIG=platform.kubeconfig,
    )  # fmt: skip
    assert finished.code == 0, finished.err + finished.out
    report = finished.report()
    assert report["validity"] == {**report["validity"], "verdict": "VALID", "reasons": []}
    assert report["ledger"]["intended"] == report["ledger"]["succeeded"] == 20
    assert sorted(row["seq"] for row in finished.rows()) == list(range(20))
    assert "exit code 0" in finished.out
    assert str(finished.folder / "report.html") in finished.out
    frames = RunFolder.open(finished.folder)
    assert frames.read_plan().digests.keys() == {"schedule", "scenarios", "pipeline"}


def test_a_sealed_run_is_reported_again_byte_for_byte_without_a_platform(locust, platform):
    finished = locust.headless("--host", platform.url, "--pipeline", PIPELINE, "--runs", "5", "--over", "2s")
    first = documents(finished.folder)
    again = pipeswarm("report", finished.folder)
    assert again.returncode == finished.code == 0, again.stderr
    assert documents(finished.folder) == first
    told = pipeswarm("report", finished.folder, "--json")
    assert json.loads(told.stdout) == json.loads(first["report.json"])
    assert pipeswarm("report", finished.folder, "--quiet").stdout == ""


def test_the_pipeline_is_uploaded_only_once_for_several_tests(locust, platform):
    for _ in range(2):
        finished = locust.headless("--host", platform.url, "--pipeline", PIPELINE, "--runs", "1")
        assert [row["outcome"] for row in finished.rows()] == ["accepted"], finished.err
    plans = [RunFolder.open(path).read_plan() for path in sorted((locust.place / "runs").iterdir())]
    assert len({plan.target_options["version_id"] for plan in plans}) == 1


def test_an_existing_pipeline_is_run_by_its_id_and_scenarios_are_checked_against_its_inputs(locust, platform, tmp_path):
    first = locust.headless("--host", platform.url, "--pipeline", PIPELINE, "--runs", "1")
    pipeline_id = RunFolder.open(first.folder).read_plan().target_options["pipeline_id"]
    (tmp_path / "bad.csv").write_text("id,scenario_name,colour\n1,a,red\n")
    refused = locust.headless(
        "--host", platform.url, "--pipeline-id", pipeline_id, "--scenarios", str(tmp_path / "bad.csv")
    )
    assert refused.code == 2
    assert "column colour" in refused.err
    (tmp_path / "good.csv").write_text("id,scenario_name,data_multiplier\n1,a,4000\n2,b,6000\n")
    finished = locust.headless(
        "--host", platform.url, "--pipeline-id", pipeline_id, "--scenarios", str(tmp_path / "good.csv"), "--over", "1s"
    )
    assert finished.code == 0, finished.err
    assert [row["run_name"] for row in finished.rows()] == ["1-a", "2-b"]


def test_without_kubernetes_start_and_report_say_what_can_not_be_judged(locust, platform, tmp_path):
    load = ("--host", platform.url, "--pipeline", PIPELINE, "--runs", "3", "--over", "1s")
    refused = locust.headless(*load, "--require-cluster", KUBECONFIG=str(tmp_path / "none"))
    assert (refused.code, refused.folder) == (2, None), refused.err
    assert "--require-cluster: the cluster can't be observed" in refused.err
    finished = locust.headless(*load, KUBECONFIG=str(tmp_path / "none"))
    assert finished.code == 0, finished.err + finished.out
    assert "warning: the cluster can't be observed" in finished.err
    assert finished.report()["not_judged"]


def test_locusts_time_limit_does_not_drain(locust):
    finished = locust.headless(
        "--simulate", QUICK, "--schedule", "constant", "--rate", "2/s", "--for", "10m", "-t", "6s", timeout=90
    )
    assert finished.code == 4, finished.err
    assert len(finished.rows()) == 1200


def test_two_processes_send_every_arrival_exactly_once(locust, platform):
    finished = locust.headless(
        "--processes", "2", "--host", platform.url, "--pipeline", PIPELINE, "--schedule", "spread", "--runs", "40", "--over", "4s",
        KUBECONFIG=platform.kubeconfig,
    )  # fmt: skip
    assert finished.code == 0, finished.err + finished.out
    rows = finished.rows()
    assert sorted(row["seq"] for row in rows) == list(range(40))
    assert {row["worker"] for row in rows} == {0, 1}
    assert all(row["worker"] == row["seq"] % 2 for row in rows)
