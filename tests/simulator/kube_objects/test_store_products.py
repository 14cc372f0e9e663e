"""A platform whose artifact store is MinIO, as installations before 2026 have it."""

import urllib.error
import urllib.request
from collections.abc import Callable

import pytest
from kubernetes import client as kubernetes
from kubernetes import config

from harness.collectors.metrics.profiles_file import load
from harness.collectors.metrics.scraping import Scrape, parse, samples
from harness.simulator.cluster import Pod, Shape
from harness.simulator.kube_objects import metrics
from harness.simulator.platform import Platform
from harness.simulator.profile import ArtifactStore, Profile
from harness.simulator.profile.store_products import StoreProduct
from tests.support.serving import QUICK, Serve, Served

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
    ("product", "page", "medians"),
    [
        # All requests alike, the half of them that fetch with a first byte after 0.08 s: in the bucket up to 0.1 s.
        (StoreProduct.MINIO, metrics.minio, {("store_first_byte_s", None): 0.1}),
        # In the middle of the bucket from 0.8192 to 1.6384 s.
        (
            StoreProduct.SEAWEEDFS,
            metrics.seaweedfs,
            {("store_request_s", "GET"): 1.2288, ("store_request_s", "PUT"): 1.2288},
        ),
    ],
)
def test_the_shipped_profiles_read_how_long_requests_take(
    product: StoreProduct, page: Callable[[Platform], str], medians: dict[tuple[str, str | None], float]
) -> None:
    """Objects of 1 MiB at 1 MiB/s, with 0.08 s before their first byte."""
    profile = Profile("one", store=ArtifactStore(product, stream_bytes_per_s=2**20, request_s=0.08))
    platform = Platform(profile)
    before = Scrape(1, parse(page(platform)))
    for _ in range(3):
        pod = Pod("pod", "kubeflow", Shape(0, 0), ())
        platform.store.write(pod, 2.0**20, lambda *_: None)
        platform.store.read(pod, 2.0**20, lambda *_: None)
    platform.loop.run(60.0)
    after = Scrape(2 * 10**9, parse(page(platform)))
    found = {
        (sample.metric, sample.labels.get("type")): sample.value
        for metric in load(product.value).metrics
        for sample in samples(metric, after, before)
        if sample.labels.get("quantile") == "0.5"
    }
    assert found == pytest.approx(medians)


@pytest.mark.parametrize(
    ("service", "path"), [("seaweedfs:9000", "/metrics"), ("mysql:3306", "/minio/v2/metrics/cluster")]
)
def test_components_that_are_not_installed_are_not_found(platform: Served, service: str, path: str) -> None:
    with pytest.raises(urllib.error.HTTPError) as refused:
        fetch(platform, SERVICE.format(service, path))
    assert refused.value.code == 404
