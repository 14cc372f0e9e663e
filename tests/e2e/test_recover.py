"""Processes of a distributed test die or stand still: what the platform acknowledged is in the ledger, each run once."""

import json
import resource
import signal

import pytest

from harness.analysis.ledger import in_words
from tests.support.answering import answering, locustfile
from tests.support.cluster import Cluster, demand_each_acknowledged_run_once
from tests.support.e2e import wait_for


@pytest.mark.fault("none")
def test_workers_of_a_killed_master_stop_and_what_they_recorded_is_recovered(locust):
    with answering() as service:
        cluster = Cluster(locust, service, "--rate", "100/s", "--for", "60s")
        cluster.answered(100)
        cluster.master.kill()
        said = [next(line for line in worker.stderr if "pipeswarm recover" in line) for worker in cluster.workers]
        sent = len(service.runs())
        spools = cluster.spools()
        assert [line.split()[-1] for line in sorted(said)] == sorted(map(str, spools))
        for worker in cluster.workers:
            worker.terminate()
            worker.wait(30)
        assert len(service.runs()) == sent, "nothing is sent without a master"
    finished = locust.finish(cluster.master)
    before = len(finished.rows())
    result, _ = cluster.recover()
    rows = demand_each_acknowledged_run_once(finished, service)
    assert len(rows) == 6000, "what was not sent is recorded as missed"
    assert sum(spool["recovered"]["arrivals"] for spool in result["spools"]) == 6000 - before
    assert any("lost its master" in (row["error"] or "") for row in rows)
    report = finished.report()
    assert report["ledger"]["unaccounted"] == 0
    assert len(report["recovered"]) == 2
    assert cluster.spools() == []


@pytest.mark.fault("none that a worker had read the answer of")
def test_a_master_that_is_started_again_recovers_what_dead_workers_left(locust):
    with answering() as service:
        cluster = Cluster(locust, service, "--rate", "100/s", "--for", "60s")
        cluster.answered(100)
        for process in (cluster.master, *cluster.workers):
            process.kill()
        for process in (cluster.master, *cluster.workers):
            process.wait()
        again = cluster.start_master("--expect-workers", "1", "--for", "1s", "--rate", "1/s")
        recovered = [next(line for line in again.stderr if "arrivals recovered" in line) for _ in cluster.workers]
        assert len(recovered) == 2
        (folder,) = (locust.place / "runs").iterdir()
        report = folder / "report.json"  # written again after each spool
        wait_for(lambda: len(json.loads(report.read_text())["recovered"]) == 2)
        again.kill()
    finished = locust.finish(cluster.master)
    demand_each_acknowledged_run_once(finished, service)
    assert len(finished.report()["recovered"]) == 2
    assert cluster.spools() == []


@pytest.mark.fault("none")
@pytest.mark.soak
def test_a_worker_that_stood_still_is_told_to_stop_and_its_rows_come_late(locust):
    with answering(delay_s=0.2) as service:
        cluster = Cluster(locust, service, "--rate", "50/s", "--for", "12s")
        cluster.answered(60)
        cluster.workers[0].send_signal(signal.SIGSTOP)
        (folder,) = (locust.place / "runs").iterdir()
        wait_for(lambda: b"WorkerLost" in (folder / "events.jsonl").read_bytes())
        cluster.workers[0].send_signal(signal.SIGCONT)
        finished = locust.finish(cluster.master)
        for worker in cluster.workers:
            worker.wait(30)
    assert finished.code == 4, finished.err
    rows = demand_each_acknowledged_run_once(finished, service)
    assert len(rows) == 600, f"missing: {in_words(sorted(set(range(600)) - {row['seq'] for row in rows}))}"
    assert any(row["error"] == "the master had given up this worker" for row in rows)
    report = finished.report()
    assert any("after it had been given up" in text for text in report["recovered"])
    assert "1 load generator worker(s) lost" in " ".join(report["validity"]["reasons"])
    assert cluster.spools() == []


@pytest.mark.fault("none")
@pytest.mark.soak
def test_while_a_spool_can_t_grow_its_rows_still_reach_the_master(locust):
    with answering() as service:
        cluster = Cluster(locust, service, "--rate", "100/s", "--for", "4s", workers=1)
        resource.prlimit(cluster.workers[0].pid, resource.RLIMIT_FSIZE, (2000, 2000))
        finished = locust.finish(cluster.master)
        cluster.workers[0].wait(30)
    assert finished.code == 0 or finished.was_late(), finished.err + finished.out
    assert len(demand_each_acknowledged_run_once(finished, service)) == 400
    assert {row["outcome"] for row in finished.rows()} == {"accepted"}


@pytest.mark.fault("none")
@pytest.mark.soak
def test_open_synchronous_executions_are_unanswered_when_the_test_is_terminated(locust):
    with answering(delay_s=1000) as service:
        process = locust.start(
            *locustfile(locust.place), "--headless", "--host", service.url, "--schedule", "burst", "--runs", "20",
            KUBECONFIG=str(locust.place / "none"),
        )  # fmt: skip
        wait_for(lambda: service.asked >= 20)
        process.terminate()
        finished = locust.finish(process)
    assert finished.code == 130, finished.err
    rows = finished.rows()
    assert sorted(row["seq"] for row in rows) == list(range(20))
    assert {row["error"] for row in rows} == {"no answer before the test was ended"}
    assert finished.report()["ledger"]["unaccounted"] == 0
