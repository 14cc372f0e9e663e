"""``kill -9`` and SIGSTOP at random instants: ``pytest -m soak tests/e2e/test_random_deaths.py``."""

import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.support.answering import answering
from tests.support.cluster import Cluster, demand_each_acknowledged_run_once
from tests.support.e2e import wait_for

_STOPPED_S = 7.0


def observer_of(process):
    """The id of the observer that this process started."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        parent = stat.read_text().rpartition(")")[2].split()[1]
        if parent == str(process.pid) and b"\0observe\0" in (stat.parent / "cmdline").read_bytes():
            return int(stat.parent.name)
    raise ProcessLookupError


def die(pid, number):
    """Kill a process, or stop it for longer than a master waits for its worker."""
    os.kill(pid, number)
    if number == signal.SIGSTOP:
        time.sleep(_STOPPED_S)
        os.kill(pid, signal.SIGCONT)


@pytest.mark.soak
@pytest.mark.timeout(180)
@pytest.mark.parametrize("instant", range(20))
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["kill", "stop"])
@pytest.mark.parametrize("victim", ["worker", "master", "observer"])
def test_whenever_a_process_dies_each_acknowledged_run_is_recorded_once(locust, victim, number, instant):
    chance = random.Random(f"{victim} {number} {instant}")
    with answering(delay_s=0.1) as service:
        cluster = Cluster(locust, service, "--rate", "100/s", "--for", "10s")
        cluster.answered(1)
        time.sleep(chance.uniform(0.0, 9.0))
        pid = {"worker": lambda: cluster.workers[0].pid, "master": lambda: cluster.master.pid}.get(
            victim, lambda: observer_of(cluster.master)
        )()
        die(pid, number)
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
        assert sorted(row["seq"] for row in rows) == list(range(1000))
    assert cluster.spools() == []
