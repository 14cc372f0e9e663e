"""Tests that are aborted or refused, and what remains on the platform afterwards."""

import json
import resource
import signal
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest

from tests.support.answering import answering, locustfile
from tests.support.e2e import FEW, PIPELINE, ROOT, Locust, free_port, wait_for


def runs_on(platform):
    """The platform's runs by id, with state and storage state."""
    with urllib.request.urlopen(f"{platform.url}/apis/v2beta1/runs?page_size=200") as answer:
        return {run["run_id"]: run for run in json.load(answer).get("runs", [])}


def cleanup(*arguments):
    command = [sys.executable, "-P", "-m", "harness.cli", "cleanup", *map(str, arguments)]
    return subprocess.run(command, check=False, capture_output=True, text=True, cwd=ROOT, timeout=60)


@pytest.mark.soak
def test_an_abort_rule_ends_the_test(locust, platform):
    finished = locust.headless(
        "--host", platform.url, "--pipeline", PIPELINE, *FEW,
        "--schedule", "constant", "--rate", "5/s", "--for", "10m", "--abort-on", "succeeded_ratio > 0 for 2s",
        "--max-runs", "3000", KUBECONFIG=platform.kubeconfig,
    )  # fmt: skip
    assert finished.code == 4, finished.err + finished.out
    (reason,) = [text for text in finished.report()["validity"]["reasons"] if "never sent" in text]
    assert "aborted by succeeded_ratio > 0 for 2s: it was 1 in the last 2 s" in reason
    assert 0 < sum(row["outcome"] == "accepted" for row in finished.rows()) < 3000
    assert len(finished.rows()) == 3000


@pytest.mark.parametrize(("hard", "enough"), [(256, False), (4096, True)])
def test_a_burst_needs_an_open_file_per_request_and_is_refused_before_it_starts_without(locust, hard, enough):
    with answering() as service:
        finished = locust.headless(
            *locustfile(locust.place), "--host", service.url, "--schedule", "burst", "--runs", "250",
            within=("bash", "-c", f"ulimit -Sn 256 && ulimit -Hn {hard} && exec \"$@\"", "bash"),
            KUBECONFIG=str(locust.place / "none"),
        )  # fmt: skip
    if enough:
        assert [row["outcome"] for row in finished.rows()] == ["accepted"] * 250, finished.err
    else:
        assert finished.code == 2, finished.err
        assert "250 requests at once need 314 open files, and this process may have 256" in finished.err
        assert not service.asked


@pytest.mark.fault("none")
def test_nothing_more_is_sent_when_it_can_not_be_recorded(locust, platform):
    """No file may grow beyond 8 KiB, as on a full disk: that is some 25 rows of the ledger."""
    (locust.place / "two.csv").write_text("id,scenario_name\n1,a\n2,b\n")
    load = ("--headless", "--host", platform.url, "--pipeline", PIPELINE, "--scenarios", "two.csv",
            "--schedule", "constant", "--rate", "10/s")  # fmt: skip
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8 * 1024, before[1]))
    try:
        too_much, loading = locust.start(*load, "--for", "10m"), locust.start(*load, "--for", "30s")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    finished = locust.finish(too_much, timeout=50)
    assert finished.code == 2, finished.err
    assert "can't be written: File too large" in finished.err
    finished = locust.finish(loading, timeout=50)
    assert finished.code == 4, finished.err
    assert "can't be written: File too large; the test was aborted" in finished.err
    assert "Traceback" not in finished.err
    assert 0 < len(runs_on(platform)) < 200


@pytest.mark.parametrize(
    ("load", "count"),
    [
        (("--schedule", "burst", "--runs", "21"), "21"),
        (("--schedule", "constant", "--rate", "10/s", "--for", "1m"), "600"),
    ],
)
def test_many_runs_on_a_real_platform_need_a_yes(locust, shared_platform, load, count):
    before = runs_on(shared_platform)
    finished = locust.headless("--host", shared_platform.url, "--pipeline", PIPELINE, *FEW, "--max-runs", "20", *load)
    assert (finished.code, finished.folder) == (2, None), finished.err
    assert f"{count} runs would be sent to {shared_platform.url}, more than --max-runs 20" in finished.err
    assert runs_on(shared_platform).keys() == before.keys()


@pytest.fixture(scope="module")
def kept(shared_platform, tmp_path_factory):
    """A test of three runs, which are still on the platform."""
    return Locust(tmp_path_factory.mktemp("kept")).headless(
        "--host", shared_platform.url, "--pipeline", PIPELINE, *FEW, "--max-runs", "2", "--runs", "3", "--over", "1s",
        "--yes",
    )  # fmt: skip


def test_with_a_yes_they_are_sent(kept, shared_platform):
    sent = {row["run"] for row in kept.rows()}
    assert len(sent) == 3, kept.err
    assert sent <= runs_on(shared_platform).keys()


def test_cleanup_deletes_the_runs_of_the_test_and_no_others(locust, kept, shared_platform):
    before = runs_on(shared_platform)
    assert {row["run"] for row in kept.rows()} <= before.keys()
    finished = locust.headless(
        "--host", shared_platform.url, "--pipeline", PIPELINE, *FEW, "--runs", "4", "--over", "1s",
        "--cleanup", "delete",
    )  # fmt: skip
    assert finished.code == 0, finished.err + finished.out
    assert len({row["run"] for row in finished.rows()}) == 4
    assert runs_on(shared_platform).keys() == before.keys()
    assert "CleanedUp" in (finished.folder / "events.jsonl").read_text()


def test_a_run_folder_is_enough_to_clean_up_later(kept, shared_platform):
    before, mine = runs_on(shared_platform), {row["run"] for row in kept.rows()}
    archived = cleanup(kept.folder, "--how", "archive", "--json")
    assert archived.returncode == 0, archived.stderr
    assert json.loads(archived.stdout) == {"runs": 3, "failed": 0, "error": ""}
    found = runs_on(shared_platform)
    assert {name for name, run in found.items() if run["storage_state"] == "ARCHIVED"} == mine
    for _ in range(2):  # runs that are gone are no error
        assert cleanup(kept.folder, "--how", "delete").stdout == "3 runs were cleaned up\n"
    assert runs_on(shared_platform).keys() == before.keys() - mine


def test_cleanup_terminates_the_runs_after_ctrl_c(locust, platform):
    process = locust.start(
        "--headless", "--host", platform.url, "--pipeline", PIPELINE, *FEW, "--schedule", "burst", "--runs", "20",
        "--cleanup", "terminate", "--cleanup-rate", "200/s", KUBECONFIG=platform.kubeconfig,
    )  # fmt: skip
    deadline = time.monotonic() + 60
    while len(runs_on(platform)) < 20 and time.monotonic() < deadline:
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    finished = locust.finish(process)
    assert finished.code == 130, finished.err
    over = {"SUCCEEDED", "FAILED", "CANCELING", "CANCELED"}
    assert {run["state"] for run in runs_on(platform).values()} <= over


def test_a_test_goes_on_when_its_output_is_closed(locust, shared_platform):
    process = locust.start(
        "--headless", "--host", shared_platform.url, "--pipeline", PIPELINE, *FEW, "--runs", "20", "--over", "4s",
        KUBECONFIG=shared_platform.kubeconfig,
    )  # fmt: skip
    while "dispatching" not in process.stderr.readline():
        pass
    process.stdout.close()
    process.stderr.close()
    assert process.wait(timeout=100) in {0, 4}
    (folder,) = (locust.place / "runs").iterdir()
    assert json.loads((folder / "report.json").read_text())["ledger"]["accepted"] == 20


@pytest.mark.parametrize("ends", ["refused", "killed"])
def test_workers_end_with_their_master(ends, locust, tmp_path):
    """Also before they are connected, when nothing else would tell them."""
    (tmp_path / "runs" / "taken").mkdir(parents=True)
    port = str(free_port())
    name = "taken" if ends == "refused" else "free"
    process = locust.start(
        "--headless", "--processes", "2", "--master-bind-port", port, "--master-port", port,
        "--pipeline", PIPELINE, *FEW, "--run-name", name,
    )  # fmt: skip
    if ends == "killed":
        wait_for(lambda: len(in_session(process.pid)) == 3)
        process.kill()
    assert process.wait(60) == (2 if ends == "refused" else -signal.SIGKILL)
    wait_for(lambda: not in_session(process.pid))


def in_session(leader):
    """The live Locust processes of a session; a simulated platform has one of its own."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, _, _, session, *_ = stat.read_text().rpartition(")")[2].split()
            found += [stat.parent.name] if session == str(leader) and state != "Z" else []
    return found
