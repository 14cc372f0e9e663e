"""A real Prometheus scrapes the served platform, components' metrics by their own names included."""

import json
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator

import pytest
import yaml

from tests.support.e2e import free_port
from tests.support.platforms import UNCACHED
from tests.support.serving import Served

BINARY = shutil.which("prometheus")
SERVICES = "/api/v1/namespaces/kubeflow/services/{}/proxy/metrics"
PATHS = {
    "ml-pipeline": "/metrics",
    "workflow-controller": SERVICES.format("workflow-controller-metrics:9090"),
    "seaweedfs": SERVICES.format("seaweedfs:9327"),
    "cluster-autoscaler": SERVICES.format("cluster-autoscaler:8085"),
}


@pytest.fixture(scope="module")
def prometheus(served: Served, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if BINARY is None:
        pytest.skip("no 'prometheus' on the PATH (Debian's package of that name)")
    folder, port = tmp_path_factory.mktemp("prometheus"), free_port()
    submit(served, 3)
    (folder / "prometheus.yml").write_text(yaml.safe_dump(configuration(served)))
    command = [
        BINARY, f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]  # fmt: skip
    with (folder / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        yield f"http://127.0.0.1:{port}"
        process.terminate()
        process.wait(20)


def configuration(served: Served) -> dict[str, object]:
    target = served.url.removeprefix("http://")
    kubelet = f"/api/v1/nodes/{first_node(served)}/proxy/metrics"
    pages = {"kubelet": kubelet, "cadvisor": f"{kubelet}/cadvisor"}
    jobs = [
        {"job_name": name, "metrics_path": path, "static_configs": [{"targets": [target]}]}
        for name, path in (PATHS | pages).items()
    ]
    return {"global": {"scrape_interval": "1s", "scrape_timeout": "1s"}, "scrape_configs": jobs}


def first_node(served: Served) -> str:
    with urllib.request.urlopen(f"{served.url}/api/v1/nodes") as answer:
        return str(json.load(answer)["items"][0]["metadata"]["name"])


def submit(served: Served, count: int) -> None:
    for number in range(count):
        body = json.dumps({"display_name": f"run-{number}", "pipeline_spec": yaml.safe_load(UNCACHED)}).encode()
        urllib.request.urlopen(urllib.request.Request(f"{served.url}/apis/v2beta1/runs", body)).close()


def value(prometheus: str, query: str) -> float:
    """The query's first answer, once there is one; a comparison in the query waits until it holds."""
    url = f"{prometheus}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
    deadline = time.monotonic() + 30
    while True:
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                result = json.load(answer)["data"]["result"]
        except OSError:
            result = []
        if result:
            return float(result[0]["value"][1])
        assert time.monotonic() < deadline, f"Prometheus has nothing for {query}"
        time.sleep(0.2)


@pytest.mark.parametrize(
    ("query", "least"),
    [
        ('grpc_server_handled_total{grpc_method="CreateRun",grpc_code="OK"}', 3),
        ('grpc_server_handling_seconds_bucket{grpc_method="CreateRun",le="+Inf"}', 3),
        ("run_server_create_requests", 3),
        ("sum(argo_workflows_gauge)", 3),
        ('argo_workflows_queue_depth_gauge{queue_name="workflow_queue"}', 0),
        ('cluster_autoscaler_nodes_count{state="ready"}', 2),
        ('kubelet_volume_stats_capacity_bytes{persistentvolumeclaim="seaweedfs-pvc"}', 20 * 2**30),
        ('kubelet_volume_stats_used_bytes{persistentvolumeclaim="mysql-pv-claim"}', 3 * 40_000),
        ('SeaweedFS_s3_request_total{type="PUT",code="200"}', 1),
        ('SeaweedFS_s3_request_seconds_bucket{type="PUT",le="+Inf"}', 1),
        ('histogram_quantile(0.5, sum by (le) (SeaweedFS_s3_request_seconds_bucket{type="PUT"}))', 0.001),
        (
            'rate(container_cpu_usage_seconds_total{job="cadvisor",container="ml-pipeline-api-server",pod=~"ml-pipeline-.*"}[10s])',
            0.06,
        ),
        ('container_memory_working_set_bytes{job="cadvisor",pod=~"mysql-.*",container!=""}', 400 * 2**20),
    ],
)
def test_prometheus_finds_the_components_by_their_own_names(prometheus: str, query: str, least: float) -> None:
    assert value(prometheus, f"{query} >= {least}") >= least


def test_no_scrape_fails(prometheus: str) -> None:
    assert value(prometheus, f"count(up) == {len(PATHS) + 2}") == len(PATHS) + 2
    assert value(prometheus, "min(min_over_time(up[1m]))") == 1
