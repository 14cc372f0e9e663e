import json

import pytest
import yaml

from harness.cli import main
from harness.cli.jobs_per_node import run_room
from harness.planning.jobs_per_node import Room
from harness.targets import kfp

TRAINING = kfp.EXAMPLE
MI = 2**20

# A pool of one node that may grow to two, and shrinks again within seconds. A run's largest step asks for one core.
POOL = """
pools:
  - {name: system, cpu: 4, memory: 16Gi, initial: 1, min: 1, max: 1, taints: [{key: CriticalAddonsOnly, value: "true"}]}
  - {name: steps, cpu: 8, memory: 16Gi, reserved_cpu: 0, initial: 1, min: 1, max: 2}
kubelet: {start: 50ms, pull_overhead_s: 50ms, pull_bytes_per_s: 10Gi, termination_s: 50ms}
autoscaler: {scan_s: 500ms, provisioning: 1s, unneeded_s: 1s, after_add_s: 1s}
api: {qps: 1000, burst: 1000, latency: 1ms}
controller: {qps: 1000, burst: 1000, operation_s: 1ms, requeue_s: 20ms, driver: 20ms}
agent: {workers: 8, report_s: 1ms, lag_s: 20ms}
steps: [{match: train, duration: 2s, output: 1Mi}, {duration: 50ms, output: 1Mi}]
"""


def test_one_run_asks_for_the_most_of_its_levels():
    assert run_room(TRAINING.read_bytes()) == Room(1.0, 1024 * MI, 1)


def test_steps_that_wait_for_all_before_them_are_alone_on_their_level():
    names = [f"step-{k:02d}" for k in range(40)]
    tasks = {name: {"dependentTasks": names[:k]} for k, name in enumerate(names)}
    room = run_room(yaml.dump({"root": {"dag": {"tasks": tasks}}}).encode())
    assert room == Room(0.1, 64 * MI, 1)
    assert run_room(yaml.dump({"root": {"dag": {"tasks": {name: {} for name in names}}}}).encode()).pods == 40


@pytest.mark.parametrize(
    ("node", "jobs", "stopped_by"),
    [
        ("cpu: 2100m, memory: 16Gi", 2, "cpu"),
        ("cpu: 3500m, memory: 16Gi", 3, "cpu"),
        ("cpu: 8, memory: 2200Mi, reserved_memory: 0", 2, "memory"),
        ("cpu: 8, memory: 16Gi, pods: 2", 2, "driver pods: pods"),
    ],
)
def test_the_number_is_found_on_a_served_cluster(serve, monkeypatch, capsys, node, jobs, stopped_by):
    served = serve(profile=POOL.replace("cpu: 8, memory: 16Gi", node))
    monkeypatch.setenv("KUBECONFIG", served.kubeconfig)
    arguments = ["--host", served.url, "--repetitions", "1", "--trial", "1m", "--settle", "1m", "--json"]
    assert main(["jobs-per-node", *arguments]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["jobs"] == jobs
    assert found["estimate"] == jobs
    assert found["stopped_by"] == stopped_by
    assert found["pool"] == "steps"
    assert {trial["jobs"] for trial in found["trials"]} == {jobs, jobs + 1}


def test_without_a_platform_it_says_what_to_give(monkeypatch, capsys):
    monkeypatch.delenv("KF_PIPELINES_ENDPOINT", raising=False)
    assert main(["jobs-per-node"]) == 2
    assert "--host" in capsys.readouterr().err
