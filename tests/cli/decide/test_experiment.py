import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest

from harness.cli import main
from harness.model.errors import ExitCode
from harness.planning import simulated_burst, sweeps
from harness.planning.sweeps import DaskWorkers
from harness.simulator.profile.file import load_profile
from tests.support.e2e import wait_for

SEARCH = """
name: nodes
question: fewest-nodes
simulate: aks-20-nodes
loads: 60
nodes: 1..12
repetitions: 3
slos: [p50(run.duration) < 220s]
"""
POOLS = Path(__file__).parents[3] / "examples/pools.yaml"
GRID = """
simulate: aks-20-nodes
loads: [20]
nodes: [4]
repetitions: 8
variants: {plain: {}, slow-drivers: {fault: driver-overhead}}
"""


def experimented(capsys, tmp_path, text, *more):
    path = tmp_path / "plan.yaml"
    path.write_text(text)
    assert main(["experiment", str(path), "--folder", str(tmp_path / "out"), "--json", *more]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_fewest_nodes_are_those_of_the_full_grid(tmp_path, capsys):
    found = experimented(capsys, tmp_path, SEARCH)
    profile, pipeline = load_profile("aks-20-nodes"), simulated_burst.package(None)
    of_profile = [simulated_burst.with_nodes(profile, nodes, pipeline) for nodes in range(1, 13)]
    enough = [
        nodes
        for nodes, its_profile in enumerate(of_profile, start=1)
        if sum(median(simulated_burst.burst(its_profile, pipeline, 60, seed).run_s) < 220 for seed in range(5)) >= 3
    ]
    assert abs(found["answers"][0]["answer"] - min(enough)) <= 1
    assert len(found["results"]) <= 0.6 * 12 * 3
    report = (tmp_path / "out" / "experiment.md").read_text()
    assert f"60 runs need {found['answers'][0]['answer']} nodes" in report
    low, high = found["answers"][0]["interval"]
    assert low <= found["answers"][0]["answer"] <= high
    page = (tmp_path / "out" / "experiment.html").read_text()
    assert f"60 runs need {found['answers'][0]['answer']} nodes" in page


def test_more_processes_give_the_same_bytes(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sweeps, "_ALONE_S", 0.0)
    folders = []
    for jobs in ("1", "3"):
        (tmp_path / jobs).mkdir()
        experimented(capsys, tmp_path / jobs, SEARCH.replace("60", "9"), "--jobs", jobs)
        files = [path for path in (tmp_path / jobs / "out").iterdir() if path.suffix != ".md"]  # which names its folder
        folders.append({path.name: path.read_bytes() for path in files})
    assert len(folders[0]) >= 4
    assert folders[0] == folders[1]


def test_a_dask_cluster_that_loses_a_worker_gives_the_same_bytes(tmp_path, capsys, monkeypatch):
    distributed = pytest.importorskip("distributed", reason="the extra pipeswarm[dask] is not installed")

    def files(name, *more):
        (tmp_path / name).mkdir()
        experimented(capsys, tmp_path / name, GRID, *more)
        found = (tmp_path / name / "out").iterdir()
        return {path.name: path.read_bytes() for path in found if path.suffix != ".md"}  # which names its folder

    expected = files("alone", "--jobs", "1")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster, set_as_default=False) as client:
        processes = client.run(os.getpid)
        result, told = DaskWorkers.result, []

        def result_after_a_death(workers, begun):
            if len(told) == 3:
                os.kill(min(processes.values()), signal.SIGKILL)
            told.append(begun)
            return result(workers, begun)

        monkeypatch.setattr(DaskWorkers, "result", result_after_a_death)
        assert files("cluster", "--scheduler", cluster.scheduler_address) == expected
    assert len(told) == 16


def test_an_interrupt_leaves_whole_results_and_no_process(tmp_path):
    plan = tmp_path / "plan.yaml"
    plan.write_text(GRID.replace("[20]", "[300]"))
    results = tmp_path / "out" / "results.jsonl"
    heeded = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # a process of the background inherits its neglect
    command = [sys.executable, "-m", "harness.cli", "experiment", str(plan), "--folder", str(tmp_path / "out")]
    with subprocess.Popen(  # this command
        [*command, "--jobs", "2"], stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        wait_for(lambda: results.exists() and len(results.read_text().splitlines()) >= 3)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal sends it: to all of them
        _, said = process.communicate(timeout=60)
        assert process.returncode == ExitCode.INTERRUPTED
        assert "Traceback" not in said
        wait_for(lambda: not alive(process.pid))
    signal.signal(signal.SIGINT, heeded)
    assert [json.loads(line)["point"] for line in results.read_text().splitlines()]
    assert {path.name for path in results.parent.iterdir()} == {"results.jsonl", "experiment.sha256"}


def alive(group):
    """The processes of the group that have not ended."""
    stats = [path.read_text().rpartition(")")[2].split() for path in Path("/proc").glob("[0-9]*/stat") if path.exists()]
    return [stat for stat in stats if int(stat[2]) == group and stat[0] != "Z"]


def test_an_interrupted_experiment_continues_where_it_stopped(tmp_path, capsys):
    whole = experimented(capsys, tmp_path, SEARCH)
    lines = (tmp_path / "out" / "results.jsonl").read_text().splitlines(keepends=True)
    (tmp_path / "out" / "results.jsonl").write_text("".join(lines[:3]) + lines[3][:20])
    again = experimented(capsys, tmp_path, SEARCH)
    assert again == whole
    assert (tmp_path / "out" / "results.jsonl").read_text() == "".join(lines)


def test_variants_are_compared_in_pairs(tmp_path, capsys):
    found = experimented(capsys, tmp_path, GRID)
    slower = next(c for c in found["comparisons"] if c["metric"] == "makespan (s)")
    assert slower["paired"]
    assert slower["variant"] == "slow-drivers"
    assert slower["change"] > 0.1
    assert slower["significant"]


def test_pools_are_compared_by_time_failures_and_cost(tmp_path, capsys):
    text = POOLS.read_text().replace("loads: 60", "loads: 12").replace("repetitions: 3", "repetitions: 1")
    found = {each["point"]["variant"]: each["values"] for each in experimented(capsys, tmp_path, text)["results"]}
    assert found.keys() == {"on-demand", "spot", "mixed"}
    usual, spot = found["on-demand"], found["spot"]
    assert usual["cost"] == pytest.approx(4 * 0.23 * usual["makespan (s)"] / 3600)  # the spot pool stays empty
    assert usual["goodput (runs/money)"] == pytest.approx(12 / usual["cost"])
    # Drivers stay on the ordinary pool of three nodes, which is paid as well.
    assert spot["cost"] == pytest.approx((3 * 0.23 + 4 * 0.09) * spot["makespan (s)"] / 3600)
    assert all(values["failed_ratio"] == 0 for values in found.values())


def test_its_observations_answer_capacity(tmp_path, capsys):
    experimented(capsys, tmp_path, GRID.replace("[4]", "[2, 4]").replace("repetitions: 8", "repetitions: 1"))
    table = tmp_path / "out" / "observations-plain.csv"
    assert main(["capacity", "--from", str(table), "--runs", "20", "--nodes", "4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["fitted_on"]["observations"] == 2


def test_a_profile_of_a_service_is_tested_and_answered_in_replicas(tmp_path, capsys):
    plan, folder = tmp_path / "plan.yaml", tmp_path / "out"
    plan.write_text("simulate: hetida-pattern-1\nloads: [40, 80]\nnodes: [1, 2]\nrepetitions: 1\n")
    assert main(["experiment", str(plan), "--folder", str(folder)]) == 0
    told = capsys.readouterr()
    assert "40 runs on 2 replicas" in told.err
    assert "| runs | replicas |" in told.out
    assert "nodes" not in told.out
    table = folder / "observations-default.csv"
    question = ["capacity", "--from", str(table), "--runs", "160", "--within", "1m", "--plot", str(tmp_path / "p.svg")]
    assert main(question) == 0
    assert re.search(r"160 runs in 60 s: \d+ replicas?\.", capsys.readouterr().out)
    assert "nodes" not in (tmp_path / "p.svg").read_text()
    other = tmp_path / "nodes.csv"
    other.write_text("runs,nodes,duration\n40,1,30\n")
    assert main(["capacity", "--from", str(table), str(other), "--runs", "160", "--within", "1m"]) == 2
    assert "count nodes and replicas" in capsys.readouterr().err


def test_another_plan_does_not_continue_old_results(tmp_path, capsys):
    experimented(capsys, tmp_path, GRID.replace("repetitions: 8", "repetitions: 1"))
    (tmp_path / "plan.yaml").write_text(GRID)
    assert main(["experiment", str(tmp_path / "plan.yaml"), "--folder", str(tmp_path / "out")]) == 2
    assert "another plan" in capsys.readouterr().err


LOAD = """
name: real
loads: 1
nodes: 3
repetitions: 1
locustfile: fake.py
hooks: {{set_nodes: "echo set {{nodes}} >> {log}", before: "{before}", cool_down: 0, timeout: 1s}}
"""


@pytest.mark.parametrize(
    ("before", "code", "message"),
    [("exit 9", 2, "hook 'before' failed with 9"), ("sleep 30", 5, "did not finish within 1 s")],
)
def test_hooks_that_fail_or_hang_end_the_experiment(tmp_path, capsys, before, code, message):
    path, log = tmp_path / "plan.yaml", tmp_path / "log"
    path.write_text(LOAD.format(log=log, before=before))
    (tmp_path / "fake.py").touch()
    assert main(["experiment", str(path), "--folder", str(tmp_path / "out")]) == code
    assert message in capsys.readouterr().err
    assert log.read_text() == "set 3\n"


def test_a_load_test_that_fails_stops_with_its_exit_code(tmp_path, capsys):
    path = tmp_path / "plan.yaml"
    path.write_text("loads: 5\nnodes: 2\nrepetitions: 1\nlocustfile: broken.py\n")
    (tmp_path / "broken.py").write_text("no locustfile")
    assert main(["experiment", str(path), "--folder", str(tmp_path / "out")]) == ExitCode.BUG
    assert "ended with 1" in capsys.readouterr().err


SMALL = "loads: 1\nnodes: 1\nrepetitions: 1\n"


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ("simulate: nothing", "no simulated platform 'nothing'"),
        ("simulate: demo\npipeline: absent.yaml", "absent.yaml does not exist"),
        ("simulate: demo\nvariants: {a: {fault: none-such}}", "no fault 'none-such'"),
        ("simulate: demo\nvariants: {a: {runs: 3}}", "'runs' has no meaning in simulated time"),
        ("simulate: demo\nvariants: {a: {pool: none-such}}", "has no pool 'none-such'"),
        ("simulate: hetida-pattern-1\nvariants: {a: {pool: runtime}}", "has no pool 'runtime' for steps"),
        ("simulate: demo\nvariants: {a: {prepare: spto=aks}}", "'spto=aks' is not a setting"),
        ("simulate: hetida-pattern-1\nvariants: {a: {prepare: spot=aks}}", "only pipelines of KFP can be prepared"),
        ("simulate: demo\nslos: [p95(submit.latency) < 1s]", "can't be judged in simulated time"),
        ("locustfile: absent.py", "there is no locustfile"),
    ],
)
def test_an_impossible_plan_is_rejected_before_anything_is_written(tmp_path, capsys, more, message):
    path = tmp_path / "plan.yaml"
    path.write_text(SMALL + more)
    assert main(["experiment", str(path), "--folder", str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_plan_without_results_may_be_corrected(tmp_path, capsys):
    path, command = (
        tmp_path / "plan.yaml",
        ["experiment", str(tmp_path / "plan.yaml"), "--folder", str(tmp_path / "out")],
    )
    (tmp_path / "load.py").touch()
    path.write_text(f"{SMALL}locustfile: load.py\nhooks: {{before: 'exit 1'}}")
    assert main(command) == 2
    path.write_text(f"{SMALL}simulate: demo")
    assert main(command) == 0
    assert "1 run on 1 node: " in capsys.readouterr().err
