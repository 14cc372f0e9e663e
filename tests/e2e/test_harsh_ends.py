"""Ends that no process of a test chooses: kills of `--processes` and of a web UI, and memory that runs out."""

import os
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.support.answering import answering, locustfile
from tests.support.cluster import demand_each_acknowledged_run_once
from tests.support.e2e import BIN, wait_for
from tests.support.web_ui import start_web_ui


def children(pid):
    """The ids of the processes that this one started, and that run Locust."""
    listed = subprocess.run(["pgrep", "-f", "-P", str(pid), "locust"], capture_output=True, text=True, check=False)
    found = list(map(int, listed.stdout.split()))
    return sorted(found)


def load(locust, service, *more):
    place = locust.place
    (place / "tmp").mkdir()
    return locust.start(
        *locustfile(place), "--headless", "--host", service.url, "--schedule", "constant", "--rate", "100/s", "--for", "60s",
        *more, TMPDIR=str(place / "tmp"), KUBECONFIG=str(place / "none"),
    )  # fmt: skip


def reported(locust, folder):
    done = subprocess.run(
        [BIN / "pipeswarm", "report", folder], capture_output=True, text=True, timeout=120, check=False,
        env={**os.environ, "TMPDIR": str(locust.place / "tmp")},
    )  # fmt: skip
    assert done.returncode == 4, done.stderr
    return done.stdout


@pytest.mark.fault("none that a process had read the answer of")
@pytest.mark.parametrize("victims", ["all", "a child"])
def test_killed_processes_of_one_command_leave_their_rows_to_the_report(locust, victims):
    with answering() as service:
        master = load(locust, service, "--processes", "2")
        wait_for(lambda: len(service.runs()) >= 150)
        started = children(master.pid)
        assert len(started) == 2
        for pid in started if victims == "all" else started[:1]:
            os.kill(pid, signal.SIGKILL)
        if victims == "all":
            master.kill()
        else:
            wait_for(lambda: any((locust.place / "runs").glob("*/events.jsonl")))
            master.send_signal(signal.SIGINT)
        finished = locust.finish(master)
    if victims == "all":
        said = reported(locust, finished.folder)
        assert said.count("arrivals recovered") <= 2
    demand_each_acknowledged_run_once(finished, service)


@pytest.mark.fault("none that it had read the answer of")
def test_a_killed_web_ui_leaves_the_rows_of_its_test(locust):
    with answering() as service:
        ui = start_web_ui(locust, *locustfile(locust.place), "--host", service.url)
        status, answer = ui.start(schedule="constant", rate="100/s", **{"for": "60s"})
        assert status == 200, answer
        wait_for(lambda: len(service.runs()) >= 150)
        ui.process.kill()
        finished = locust.finish(ui.process)
    demand_each_acknowledged_run_once(finished, service)


@pytest.mark.fault("none that it had read the answer of; an out-of-memory kill is a kill")
def test_a_load_whose_memory_is_limited_ends_with_its_rows_or_goes_on(locust):
    with answering() as service:
        process = load(locust, service)
        wait_for(lambda: len(service.runs()) >= 150)
        used = int(Path(f"/proc/{process.pid}/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        subprocess.run(["prlimit", "--pid", str(process.pid), f"--as={used}"], check=True)
        before = len(service.runs())
        wait_for(lambda: len(service.runs()) >= before + 150 or process.poll() is not None)
        process.send_signal(signal.SIGKILL)
        finished = locust.finish(process)
    rows = demand_each_acknowledged_run_once(finished, service)
    assert max(Counter(row["seq"] for row in rows).values()) == 1


@pytest.mark.fault("none")
@pytest.mark.soak
@pytest.mark.timeout(900)
def test_of_100_000_runs_in_one_test_each_is_accounted_for(locust):
    with answering() as service:
        process = locust.start(
            *locustfile(locust.place), "--headless", "--host", service.url, "--schedule", "constant", "--rate", "400/s",
            "--for", "250s", "--yes", KUBECONFIG=str(locust.place / "none"),
        )  # fmt: skip
        finished = locust.finish(process, timeout=800)
    rows = demand_each_acknowledged_run_once(finished, service)
    assert sorted(row["seq"] for row in rows) == list(range(100_000))
    assert {row["run"] for row in rows if row["run"]} == set(service.runs())
    report = finished.report()
    assert (report["ledger"]["intended"], report["ledger"]["unaccounted"]) == (100_000, 0)
