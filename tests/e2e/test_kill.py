"""``kill -9`` of a running load: everything it had booked is in the run folder."""

import json
import os
import signal
import subprocess
import time
from urllib.request import urlopen

import pytest

from harness.analysis.ledger import in_words
from harness.store import RunFolder
from tests.support.answering import answering, locustfile
from tests.support.e2e import BIN, FEW, PIPELINE, free_port, platform, wait_for

__all__ = ["platform"]


@pytest.mark.fault("none that it had read the answer of")
def test_a_killed_load_loses_no_acknowledged_run(locust, tmp_path):
    with answering() as service:
        process = locust.start(
            *locustfile(tmp_path), "--headless", "--host", service.url, "--schedule", "constant", "--rate", "300/s",
            "--for", "30s", KUBECONFIG=str(tmp_path / "none"),
        )  # fmt: skip
        deadline = time.monotonic() + 60
        while len(service.runs()) < 600:
            assert time.monotonic() < deadline, "the load did not start"
            time.sleep(0.02)
        os.kill(process.pid, signal.SIGKILL)
        finished = locust.finish(process)
        time.sleep(0.1)
    rows = finished.rows()
    seqs = [row["seq"] for row in rows]
    assert len(seqs) == len(set(seqs)) >= 550
    acknowledged = service.acknowledged()
    assert len(acknowledged) >= 500
    assert acknowledged <= {row["run"] for row in rows} <= set(service.runs())

    reported = subprocess.run(
        [BIN / "pipeswarm", "report", finished.folder], capture_output=True, text=True, timeout=60, check=False
    )
    assert reported.returncode == 4, reported.stderr
    report = finished.report()
    assert report["ledger"]["intended"] == 9000
    assert report["ledger"]["unaccounted"] == 9000 - len(rows)
    assert RunFolder.open(finished.folder).read_plan().intended == 9000


@pytest.mark.fault("what the worker had not sent; each is listed")
def test_a_killed_worker_makes_the_run_invalid_saves_its_rows_and_lists_the_lost_arrivals(locust, tmp_path):
    with answering() as service:
        options, bus = locustfile(tmp_path), str(free_port())
        master = locust.start(
            *options, "--headless", "--master", "--master-bind-port", bus, "--expect-workers", "2", "--host", service.url,
            "--schedule", "constant", "--rate", "100/s", "--for", "9s", KUBECONFIG=str(tmp_path / "none"),
        )  # fmt: skip
        workers = [locust.start(*options[:2], "--worker", "--master-port", bus) for _ in range(2)]
        deadline = time.monotonic() + 60
        while len(service.runs()) < 300:
            assert time.monotonic() < deadline, "the load did not start"
            time.sleep(0.02)
        workers[0].kill()
        finished = locust.finish(master)
        workers[1].wait(30)
    assert finished.code == 4, finished.err + finished.out
    rows = finished.rows()
    seqs = sorted(row["seq"] for row in rows)
    assert len(seqs) == len(set(seqs)), "no arrival is booked twice"
    assert service.acknowledged() <= {row["run"] for row in rows}, (
        "the rows of the dead worker were read from its spool"
    )
    lost = sorted(set(range(900)) - set(seqs))
    assert 200 < len(lost) < 400
    assert len({seq % 2 for seq in lost}) == 1, "all from the stripe of the dead worker"
    report = finished.report()
    reasons = " ".join(report["validity"]["reasons"])
    assert f"{len(lost)} arrivals are unaccounted for: seq {in_words(lost)}" in reasons
    assert f"…, {lost[-1]}" in in_words(lost), "the list goes to its end"
    assert "1 load generator worker(s) lost" in reasons
    assert report["ledger"]["unaccounted"] == len(lost)


@pytest.mark.fault("none")
@pytest.mark.parametrize(
    "schedule", [("constant", "--rate", "100/s"), ("concurrency", "-u", "200", "-r", "200")], ids=["open", "closed"]
)
def test_the_next_test_finds_the_runs_that_a_killed_load_had_not_recorded(schedule, locust, platform):
    load = ("--headless", "--host", platform.url, "--pipeline", PIPELINE, *FEW, "--schedule")
    process = locust.start(*load, *schedule, "--for", "30s", KUBECONFIG=str(locust.place / "none"))
    rows = locust.place / "runs"
    wait_for(lambda: sum(path.read_bytes().count(b"\n") for path in rows.glob("*/submissions.jsonl")) > 100)
    os.kill(process.pid, signal.SIGKILL)
    killed = locust.finish(process)
    wait_for(lambda: json.loads((killed.folder / "live.json").read_text())["observer"]["stage"] == "over")
    listed = {run["run_id"]: run["display_name"] for run in runs_of(platform.url)}
    before = {row["run"] for row in killed.rows()}
    again = locust.headless(*load, "burst", "--runs", "1", KUBECONFIG=str(locust.place / "none"))
    assert f"{killed.folder}: its load was killed" in again.err
    found = [row for row in killed.rows() if row["run"] not in before]
    assert {row["run"]: row["run_name"] for row in found} == {run: listed[run] for run in listed.keys() - before}
    assert len({row["seq"] for row in killed.rows()}) == len(killed.rows())
    report = killed.report()
    assert report["ledger"]["accepted"] == len(listed)
    assert bool(report["recovered"]) == bool(found)


def runs_of(url):
    """All runs of the platform, as it lists them."""
    page = ""
    while True:
        with urlopen(f"{url}/apis/v2beta1/runs?page_size=200&page_token={page}") as answer:
            listed = json.load(answer)
        yield from listed.get("runs", ())
        if not (page := listed.get("next_page_token", "")):
            return
