"""A platform whose artifact store is MinIO, as installations before 2026 have it."""

import urllib.error
import urllib.request

import pytest
from kubernetes import client as kubernetes
from kubernetes import config

from harness.collectors.metric_profiles import load
from harness.collectors.scraping import Scrape, parse, samples
from tests.simulator.conftest import QUICK, Serve, Served

SERVICE = "/api/v1/namespaces/kubeflow/services/{}/proxy{}"


@pytest.fixture(scope="module")
def platform(serve: Serve) -> Served:
    return serve(profile=f"{QUICK}store: {{product: minio, used: 15Gi}}\n")


def fetch(platform: Served, path: str) -> str:
    with urllib.request.urlopen(platform.url + path) as answer:
        return str(answer.read().decode())


def test_the_cluster_shows_minio_under_the_names_of_its_manifests(platform: Served) -> None:
    api = config.new_client_from_config(platform.kubeconfig)
    core, apps = kubernetes.CoreV1Api(api), kubernetes.AppsV1Api(api)
    deployments = {each.metadata.name for each in apps.list_namespaced_deployment("kubeflow").items}
    assert {"minio", "seaweedfs"} & deployments == {"minio"}
    claims = {each.metadata.name for each in core.list_namespaced_persistent_volume_claim("kubeflow").items}
    assert claims == {"minio-pvc", "mysql-pv-claim"}
    (pod,) = core.list_namespaced_pod("kubeflow", label_selector="app=minio").items
    assert pod.spec.volumes[0].persistent_volume_claim.claim_name == "minio-pvc"
    kubelet = fetch(platform, f"/api/v1/nodes/{pod.spec.node_name}/proxy/metrics")
    assert 'kubelet_volume_stats_used_bytes{namespace="kubeflow",persistentvolumeclaim="minio-pvc"}' in kubelet


def test_the_shipped_profile_reads_minios_own_metrics(platform: Served) -> None:
    page = parse(fetch(platform, SERVICE.format("minio-service:9000", "/minio/v2/metrics/cluster")))
    values = {
        sample.metric: sample.value
        for metric in load("minio").metrics
        for sample in samples(metric, Scrape(1, page), None)
    }
    assert values["store_capacity_bytes"] == 20 * 2**30
    assert values["store_available_bytes"] == 5 * 2**30


@pytest.mark.parametrize(
    ("service", "path"), [("seaweedfs:9000", "/metrics"), ("mysql:3306", "/minio/v2/metrics/cluster")]
)
def test_what_is_not_installed_is_not_found(platform: Served, service: str, path: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        fetch(platform, SERVICE.format(service, path))
    assert refused.value.code == 404
