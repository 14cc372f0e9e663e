"""``kill -9`` and SIGSTOP at random instants: ``pytest -m soak tests/e2e/test_random_deaths.py``.

What the platform acknowledged is known from a server of the test's own. Instants are drawn within the sending.
"""

import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.support.answering import answering, locustfile
from tests.support.cluster import Cluster, demand_each_acknowledged_run_once
from tests.support.e2e import QUICK, ROOT, wait_for
from tests.support.forwarding import forwarding
from tests.support.serving import simulated

_SENDING_S = 6.0
_LOAD = ("--for", "6s", "--rate", "100/s")
_GIVEN_UP_S = 7.0  # longer than a master waits for its worker, and a worker for its master
_STOPPED_S = 2.0

each_signal_at_random_instants = pytest.mark.parametrize(
    ("number", "instant"),
    [
        pytest.param(number, k, id=f"{number.name}-{k}")
        for number in (signal.SIGKILL, signal.SIGSTOP)
        for k in range(20)
    ],
)
pytestmark = [pytest.mark.soak, pytest.mark.timeout(180), each_signal_at_random_instants]


def observer_of(process):
    """The id of the observer that this process started."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        parent = stat.read_text().rpartition(")")[2].split()[1]
        if parent == str(process.pid) and b"\0observe\0" in (stat.parent / "cmdline").read_bytes():
            return int(stat.parent.name)
    raise ProcessLookupError


def strike(victim, number, instant, find, *, stopped_s=_STOPPED_S):
    """Kill the process whose id `find` returns, or stop it for a while, at a random instant of the sending."""
    time.sleep(random.Random(f"{victim} {number} {instant}").uniform(0.0, _SENDING_S))
    pid = find()
    os.kill(pid, number)
    if number == signal.SIGSTOP:
        time.sleep(stopped_s)
        os.kill(pid, signal.SIGCONT)


def demand_every_arrival(rows, count=600):
    assert sorted(row["seq"] for row in rows) == list(range(count))


@pytest.mark.fault("none that was acknowledged")
@pytest.mark.parametrize("victim", ["worker", "master", "observer"])
def test_whenever_a_process_of_a_cluster_dies_each_acknowledged_run_is_recorded_once(locust, victim, number, instant):
    with answering(delay_s=0.1) as service:
        cluster = Cluster(locust, service, *_LOAD)
        cluster.answered(1)
        ids = {"worker": lambda: cluster.workers[0].pid, "master": lambda: cluster.master.pid}
        strike(victim, number, instant, ids.get(victim, lambda: observer_of(cluster.master)), stopped_s=_GIVEN_UP_S)
        if (victim, number) == ("master", signal.SIGKILL):
            for worker in cluster.workers:
                wait_for(lambda worker=worker: worker.poll() is not None or cluster.spools())
                worker.terminate()
        finished = locust.finish(cluster.master)
        for worker in cluster.workers:
            worker.terminate()
            worker.wait(60)
    if cluster.spools():
        cluster.recover()
    rows = demand_each_acknowledged_run_once(finished, service)
    if (victim, number) != ("worker", signal.SIGKILL):
        demand_every_arrival(rows)
    assert cluster.spools() == []


@pytest.mark.fault("none that it had read the answer of")
def test_whenever_a_headless_load_dies_each_acknowledged_run_is_recorded_once(locust, number, instant):
    with answering(delay_s=0.1) as service:
        process = locust.start(
            *locustfile(locust.place), "--headless", "--host", service.url, "--schedule", "constant", *_LOAD,
            KUBECONFIG=str(locust.place / "none"),
        )  # fmt: skip
        wait_for(service.runs)
        strike("headless", number, instant, lambda: process.pid)
        finished = locust.finish(process)
    rows = demand_each_acknowledged_run_once(finished, service)
    if number == signal.SIGSTOP:
        demand_every_arrival(rows)


@pytest.mark.fault("none")
def test_whenever_the_platform_dies_each_run_that_it_acknowledged_is_recorded_once(locust, number, instant):
    with simulated("--profile", QUICK, "--seed", "7") as served, forwarding(served.url) as service:
        process = locust.start(
            "--headless", "--host", service.url, "--pipeline", str(ROOT / "harness/targets/training.yaml"),
            "--schedule", "constant", "--for", "6s", "--rate", "20/s", "--drain", "1s",
            KUBECONFIG=str(locust.place / "none"),
        )  # fmt: skip
        wait_for(service.runs)
        strike("simulator", number, instant, lambda: served.process.pid)
        finished = locust.finish(process)
    demand_every_arrival(demand_each_acknowledged_run_once(finished, service), 120)
