import json

import pytest

from harness.cli import main
from harness.targets import kfp

# A pool of one node that may grow to two, and shrinks again within seconds. A run's largest step asks for one core.
POOL = """
pools:
  - {name: system, cpu: 4, memory: 16Gi, initial: 1, min: 1, max: 1, taints: [{key: CriticalAddonsOnly, value: "true"}]}
  - {name: steps, cpu: 8, memory: 16Gi, reserved_cpu: 0, initial: 1, min: 1, max: 2}
kubelet: {start: 50ms, pull_overhead_s: 50ms, pull_bytes_per_s: 10Gi, termination_s: 50ms}
autoscaler: {scan_s: 500ms, provisioning: 1s, unneeded_s: 1s, after_add_s: 1s}
api: {qps: 1000, burst: 1000, latency: 1ms}
controller: {qps: 1000, burst: 1000, operation_s: 1ms, settle_s: 1ms, requeue_s: 20ms, driver: 20ms}
agent: {workers: 8, report_s: 1ms, lag_s: 20ms}
steps: [{match: train, duration: 2s, output: 1Mi}, {duration: 50ms, output: 1Mi}]
"""


@pytest.mark.parametrize(
    ("node", "jobs", "stopped_by"),
    [
        ("cpu: 2100m, memory: 16Gi", 2, "cpu"),
        pytest.param("cpu: 3500m, memory: 16Gi", 3, "cpu", marks=pytest.mark.soak),
        ("cpu: 8, memory: 2200Mi, reserved_memory: 0", 2, "memory"),
        ("cpu: 8, memory: 16Gi, pods: 2", 2, "pods"),
    ],
)
def test_the_number_of_runs_is_found_on_a_served_cluster(serve, monkeypatch, capsys, node, jobs, stopped_by):
    served = serve(profile=POOL.replace("cpu: 8, memory: 16Gi", node))
    monkeypatch.setenv("KUBECONFIG", served.kubeconfig)
    arguments = ["--host", served.url, "--repetitions", "1", "--trial", "1m", "--settle", "1m", "--json"]
    assert main(["capacity", "jobs-per-node", *arguments]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["jobs"] == jobs
    assert found["estimate"] == jobs
    assert found["stopped_by"].removeprefix("driver pods: ") == stopped_by  # whichever pod comes first
    assert found["pool"] == "steps"
    assert {trial["jobs"] for trial in found["trials"]} == {jobs, jobs + 1}


def test_steps_on_a_tainted_pool_count_without_the_drivers_on_the_default_pool(serve, monkeypatch, capsys, tmp_path):
    """Three drivers' pods fill the default pool's node again and again; only steps take room on the tainted one."""
    tainted = "cpu: 2100m, memory: 16Gi, taints: [{key: sku, value: training}]"
    default = "  - {name: default, cpu: 4, memory: 16Gi, pods: 3, initial: 1, min: 1, max: 1}\nkubelet:"
    served = serve(profile=POOL.replace("cpu: 8, memory: 16Gi", tainted).replace("kubelet:", default))
    monkeypatch.setenv("KUBECONFIG", served.kubeconfig)
    pipeline = tmp_path / "placed.yaml"
    selected = ["--node-selector", "agentpool=steps", "--toleration", "sku=training:NoSchedule"]
    assert main(["prepare", str(kfp.EXAMPLE), "-o", str(pipeline), *selected]) == 0
    capsys.readouterr()
    arguments = ["--host", served.url, "--repetitions", "1", "--trial", "1m", "--settle", "1m", "--json"]
    assert main(["capacity", "jobs-per-node", *arguments, "--pool", "steps", "--pipeline", str(pipeline)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["jobs"], found["estimate"], found["stopped_by"]) == (2, 2, "cpu")


def test_without_a_platform_the_error_names_the_option(monkeypatch, capsys):
    monkeypatch.delenv("KF_PIPELINES_ENDPOINT", raising=False)
    assert main(["capacity", "jobs-per-node"]) == 2
    assert "--host" in capsys.readouterr().err
