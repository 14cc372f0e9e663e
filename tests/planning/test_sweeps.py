"""Simulations on several processes, and on a real Dask cluster: the same results in the same order."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time

import pytest

from harness.model.errors import ConfigError, PipeswarmError, TargetUnreachableError
from harness.planning import sweeps
from harness.planning.sweeps import DaskWorkers, Sweep, Workers, open_workers


@pytest.fixture
def at_once(monkeypatch):
    monkeypatch.setattr(sweeps, "_ALONE_S", 0.0)


def slowly(number):
    time.sleep(0.02 * (number % 3))
    return -number, os.getpid()


@pytest.mark.usefixtures("at_once")
def test_several_processes_give_the_results_in_order():
    with open_workers(2) as workers:
        found = Sweep(slowly, workers).map(range(12))
    assert [value for value, _ in found] == [-number for number in range(12)]
    assert os.getpid() not in {process for _, process in found}
    assert not multiprocessing.active_children(), "none is left"


class Told:
    """Progress that is kept."""

    def __init__(self):
        self.expected = self.over = 0

    def expect(self, more):
        self.expected += more

    def advance(self):
        self.over += 1


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("jobs", [1, 2])
def test_progress_is_told_of_each_result_whatever_works_on_it(jobs):
    told = Told()
    with open_workers(jobs, progress=told) as workers:
        Sweep(slowly, workers).map(range(5))
    assert told.over == 5


def test_a_short_sweep_needs_no_other_process():
    now_s = 0.0
    workers = Workers(8, lambda: now_s)
    assert [process for _, process in Sweep(slowly, workers).map(range(3))] == [os.getpid()] * 3
    now_s = 10.0
    assert workers.count == 8


@pytest.mark.usefixtures("at_once")
def test_what_was_begun_for_later_is_not_computed_again():
    with open_workers(2) as workers:
        sweep = Sweep(slowly, workers)
        process = sweep.first([4, 5])[1]
        assert set(sweep._begun) == {5}
        begun = sweep._begun[5]
        assert sweep.first([5, 6]) == begun.result()
        assert set(sweep._begun) == {6}
    assert process


@pytest.mark.usefixtures("at_once")
def test_a_process_that_is_killed_is_named_with_what_to_do():
    with open_workers(2) as workers, pytest.raises(PipeswarmError, match="was killed") as raised:
        Sweep(os._exit, workers).map([3, 4])
    assert "--jobs 1" in str(raised.value)


@pytest.mark.usefixtures("at_once")
def test_an_interrupt_ends_what_was_begun():
    def interrupted():
        with open_workers(2) as workers:
            Sweep(time.sleep, workers).first([0.0, 500.0, 501.0])
            signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a process of the background ignores it
    try:
        with pytest.raises(KeyboardInterrupt):
            interrupted()  # and not 500 s later
    finally:
        signal.signal(signal.SIGINT, before)
    assert not multiprocessing.active_children()


_TO_BE_KILLED = """
import time
from harness.planning import sweeps
sweeps._ALONE_S = 0
if __name__ == "__main__":
    with sweeps.open_workers(2) as workers:
        sweep = sweeps.Sweep(time.sleep, workers)
        sweep.first([0.0, 500.0])
        print("begun", flush=True)
        sweep.first([500.0])
"""


def test_a_sweep_that_is_killed_leaves_no_process(tmp_path):
    script = tmp_path / "killed.py"
    script.write_text(_TO_BE_KILLED)
    with subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "begun\n"
        process.kill()
        process.communicate(timeout=60)  # until the last process has closed its end of the pipe, and not 500 s later


@pytest.mark.usefixtures("at_once")
def test_errors_of_the_function_are_raised_as_they_are():
    with open_workers(2) as workers, pytest.raises(ZeroDivisionError):
        Sweep(reciprocal, workers).map([1, 0])


def reciprocal(number):
    return 1 / number


# --- a real Dask cluster ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def cluster():
    distributed = pytest.importorskip("distributed", reason="the extra pipeswarm[dask] is not installed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        yield cluster


def test_a_worker_that_dies_mid_sweep_changes_nothing(cluster):
    with open_workers(1, cluster.scheduler_address) as workers:
        sweep = Sweep(slowly, workers)
        assert workers.count == 2
        _, process = sweep.first(range(20))
        os.kill(process, signal.SIGKILL)
        rest = [sweep.first([number, *range(number + 1, 20)])[0] for number in range(1, 20)]
    assert rest == [-number for number in range(1, 20)]


def test_a_cluster_of_one_thread_computes_too(cluster):
    with open_workers(1, cluster.scheduler_address) as workers:
        kept = next(iter(workers._client.nthreads()))
        workers._client.nthreads = lambda: {kept: 1}
        assert workers.count == 1
        assert os.getpid() not in {Sweep(slowly, workers).first([number])[1] for number in range(3)}


def test_an_address_without_a_scheduler_is_refused(monkeypatch):
    monkeypatch.setattr(sweeps, "_CONNECT_S", 1)
    with pytest.raises(TargetUnreachableError, match="no Dask scheduler answers"):
        DaskWorkers("tcp://127.0.0.1:9")
    with pytest.raises(ConfigError, match="--scheduler 'what'"):
        DaskWorkers("what")


def test_without_dask_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ConfigError, match="needs Dask") as raised:
        DaskWorkers("tcp://127.0.0.1:9")
    assert "pipeswarm[dask]" in str(raised.value)
