"""The simulated controller's page of metrics, against that of a real Argo 4.0.8."""

import re
from pathlib import Path

import pytest

from harness.simulator.kube_objects.metrics import workflow_controller
from harness.simulator.platform import Platform
from tests.support.argo_platform import ArgoPlatform
from tests.support.platforms import profile, submit, upload

RECORDED = Path(__file__).parents[2] / "collectors" / "fixtures" / "argo_controller.txt"
LIMITER = "argo_workflows_client_rate_limiter_latency"
SPEC = {"entrypoint": "w", "templates": [{"name": "w", "container": {"image": "a"}}]}


def described(page: str) -> dict[str, str]:
    """HELP and TYPE by name, without the address of the documentation."""
    found = re.findall(r"# HELP (\S+) (.*?)(?: https://\S+)?\n# TYPE \S+ (\S+)", page)
    return {name: f"{text} ({kind})" for name, text, kind in found}


def series(page: str) -> set[str]:
    """Names with their labels, and bounds of buckets."""
    return {line.rpartition(" ")[0] for line in page.splitlines() if not line.startswith("#")}


def values(page: str) -> dict[str, float]:
    lines = (line.rpartition(" ") for line in page.splitlines() if not line.startswith("#"))
    return {name: float(value) for name, _, value in lines}


def test_every_series_is_one_of_the_real_controllers() -> None:
    platform = Platform(profile())
    submit(platform, upload(platform), 3)
    platform.loop.run(100.0)
    page, real = workflow_controller(platform), RECORDED.read_text()
    assert described(page) == described(real)
    assert series(page) <= series(real)


def test_the_waits_for_the_clients_limit_are_told_by_the_version_that_tells_them() -> None:
    for version, shown in (("3.5", False), ("4.0", False), ("4.1", True)):
        platform = ArgoPlatform(controller={"argo": version, "settle_s": None, "qps": 1.0, "burst": 1})
        for number in range(4):
            platform.create("Workflow", f"w{number}", spec=SPEC)
        platform.run(60.0)
        page = workflow_controller(platform.platform)
        assert (LIMITER in page) is shown
        if shown:
            bounds = re.findall(LIMITER + r'_bucket{le="(.*?)"}', page)
            assert bounds == ["0.01", "0.1", "0.5", "1", "5", "10", "30", "60", "180", "+Inf"]
            assert values(page)[f"{LIMITER}_sum"] > 10.0


def test_workflows_of_argo_and_of_kfp_share_workers_requests_and_limits() -> None:
    platform = ArgoPlatform(controller={"workers": 1, "operation_s": 1.0, "parallelism": 2})
    for number in range(3):
        platform.create("Workflow", f"w{number}", spec=SPEC)
    submit(platform.platform, upload(platform.platform))
    platform.run(0.5)
    at_work = values(workflow_controller(platform.platform))
    assert at_work['argo_workflows_workers_busy_count{worker_type="workflow_queue"}'] == 1
    assert at_work['argo_workflows_queue_depth_gauge{queue_name="workflow_queue"}'] == 3
    platform.run(4.5)
    held = values(workflow_controller(platform.platform))
    assert held['argo_workflows_gauge{phase="Running"}'] == 2
    assert held['argo_workflows_gauge{phase="Pending"}'] == 2
    platform.run(200.0)
    over = values(workflow_controller(platform.platform))
    assert over['argo_workflows_gauge{phase="Succeeded"}'] == 4
    pods = 3 + 7  # of KFP's three steps: four drivers and three executors
    assert over['argo_workflows_k8s_request_total{kind="pods",status_code="201",verb="Create"}'] == pytest.approx(pods)
    waited = over['argo_workflows_queue_latency_sum{queue_name="workflow_queue"}']
    assert waited >= 1.0 + 2.0 + 3.0
