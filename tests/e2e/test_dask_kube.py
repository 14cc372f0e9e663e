"""Dask tenants in Kubernetes as users run them: Locust, the served simulator, the observer and the report."""

import json

from tests.support.e2e import ROOT

PROFILE = """
pools:
  - {name: default, cpu: 8, memory: 32Gi, initial: 1, min: 1, max: 1}
  - {name: gpu, cpu: 4, memory: 16Gi, gpu: 2, driver: 2s, initial: 1, min: 1, max: 3, taints: [{key: nvidia.com/gpu}]}
autoscaler: {provisioning: 2s, scan_s: 1s}
kubelet: {image_bytes: 120Mi, pull_bytes_per_s: 120Mi, start: 0.2s}
"""
TENANTS = """id,scenario_name,tenant,width,tasks,task_s,variation
1,narrow,forecasting,1,1,1,0
2,wide,quality,2,2,1,0
"""


def test_two_tenants_share_a_pool_of_gpus_that_grows_for_them(locust, tmp_path):
    (tmp_path / "small.yaml").write_text(PROFILE)
    (tmp_path / "tenants.csv").write_text(TENANTS)
    finished = locust.headless(
        "-f", str(ROOT / "locustfiles/dask_tenants.py"), "--cluster", "kube", "--scenarios", "tenants.csv",
        "--schedule", "burst", "--resources", "cpu=1,nvidia.com/gpu=1", "--simulate", "small.yaml",
        "--platform-namespace", "kube-system",
    )  # fmt: skip
    assert finished.code in {0, 4}, finished.err + finished.out
    report = finished.report()
    assert report["ledger"]["succeeded"] == 2, report["errors"]
    assert [each["name"] for each in report["tenants"]["tenants"]] == ["forecasting", "quality"]
    assert report["pending"]["phase_s"]["count"] == 2 * 2 + 1 + 2  # schedulers, stages and workers
    charges = report["cost"]
    assert 0 < charges["held_gpu_hours"] < charges["gpu_hours"]
    assert charges["overhead"] > 0
    assert report["image_pulls"]["run_s"] > 0.5
    assert report["gpu_drivers"]["nodes"] >= 1
    assert 1.0 < report["gpu_drivers"]["median_s"] < 4.0
    spans = [json.loads(line) for line in (finished.folder / "spans.jsonl").read_text().splitlines()]
    of_sessions = {span["task"] for span in spans if span["source"] == "dask_tenants"}
    assert of_sessions >= {
        "wait for the scheduler", "wait for the first worker", "wait for all workers", "compute", "close",
    }  # fmt: skip
    assert {"serving", "running"} <= {span["phase"] for span in spans if span["source"] == "kubernetes"}
