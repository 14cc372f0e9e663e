"""Tenants with Dask clusters: what is asked of a session, and real sessions (soak: seconds of CPU each)."""

import json
import subprocess
import sys
import time

import orjson
import psutil
import pytest

from harness.drive.http.clients import ProcessClient
from harness.model.http import HttpAnswer, HttpRequest
from harness.model.phases import FAILED, SUCCEEDED
from harness.model.scenario import Scenario
from harness.targets.completed_run import CompletedRun
from harness.targets.dask_tenants import DaskTenants
from harness.targets.dask_tenants.session import lengths, work


def test_a_session_gets_the_scenarios_values_and_defaults_for_the_others():
    asked = []

    def exchange(request: HttpRequest) -> HttpAnswer:
        asked.append(orjson.loads(request.body))
        return HttpAnswer(200, b'{"exit_code": 0, "took_s": 1.0, "cpu_s": 1.0, "peak_bytes": 1}')

    run = DaskTenants(30.0).submit(Scenario("1", "a", {"width": 3, "task_s": 0.5}, {}), exchange)
    assert run.state == SUCCEEDED
    (given,) = asked
    assert given["argv"] == [
        sys.executable, "-P", "-m", "harness.targets.dask_tenants.session",
        "--width=3", "--tasks=8", "--task-s=0.5", "--variation=0.0",
    ]  # fmt: skip
    assert given["time_limit_s"] == 30.0


def test_tasks_vary_around_their_mean_and_equally_in_each_session():
    drawn = lengths(400, 2.0, 0.25)
    assert drawn == lengths(400, 2.0, 0.25)
    assert 1.5 <= min(drawn) < 1.6
    assert 2.4 < max(drawn) <= 2.5
    assert lengths(3, 2.0, 0.0) == [2.0, 2.0, 2.0]


def test_work_uses_the_core_for_so_long():
    began_s = time.thread_time()
    assert work(0.05) == 0.05
    assert time.thread_time() - began_s >= 0.05


def session(**values) -> CompletedRun:
    return DaskTenants(120.0).submit(Scenario("1", "a", values, {}), ProcessClient())


@pytest.mark.soak
def test_a_session_is_a_real_cluster_with_a_process_per_worker():
    run = session(width=2, tasks=4, task_s=0.05)
    assert (run.state, run.error) == (SUCCEEDED, "")
    assert [part.task for part in run.parts] == [
        "rest of dask_tenants", "wait for the scheduler", "wait for the first worker", "wait for all workers", "compute",
        "close",
    ]  # fmt: skip


@pytest.mark.soak
def test_wrong_values_fail_the_run_and_say_what_is_allowed():
    run = session(width=0)
    assert run.state == FAILED
    assert "whole numbers from 1 on" in run.error


@pytest.mark.soak
def test_a_worker_that_dies_mid_task_is_replaced_and_it_is_said():
    given = ["--width=2", "--tasks=2", "--task-s=4", "--variation=0"]
    with subprocess.Popen(
        [sys.executable, "-P", "-m", "harness.targets.dask_tenants.session", *given],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    ) as running:  # fmt: skip
        while json.loads(running.stdout.readline())["phase"] != "wait for all workers":
            pass
        time.sleep(1.0)  # its tasks have begun, and are not over
        workers = [
            each for each in psutil.Process(running.pid).children(recursive=True) if "spawn_main" in str(each.cmdline())
        ]
        assert len(workers) == 2
        workers[0].kill()
        lines = [json.loads(line) for line in running.stdout]
    assert running.returncode == 0
    assert {"remark": "1 of 2 workers died while they computed"} in lines
