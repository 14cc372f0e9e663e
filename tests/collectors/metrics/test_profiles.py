"""The built-in metric profiles, against recorded pages of exporters and their sources.

The pages in fixtures/ are cut to the names that the profiles ask for; fixtures/README.md tells how they were recorded.
"""

from pathlib import Path

import pytest

from harness.collectors.metrics.profiles_file import load
from harness.collectors.metrics.scraping import Scrape, parse, samples

FIXTURES = Path(__file__).parents[1] / "fixtures"
LENGTH_S = 5.0  # between the two scrapes of a page


def recorded(profile: str, before: str, after: str) -> dict[tuple[str, str], float]:
    """Values by (metric, first label's value) of two scrapes five seconds apart."""
    first, second = Scrape(0, parse(before)), Scrape(round(LENGTH_S * 1e9), parse(after))
    return {
        (sample.metric, next(iter(sample.labels.values()), "")): sample.value
        for metric in load(profile, ("kubeflow",)).metrics
        for sample in samples(metric, second, first)
    }


def test_every_metric_of_mysql_is_found_at_a_real_exporter() -> None:
    pages = (FIXTURES / f"mysqld_exporter.{when}.txt" for when in ("before", "after"))
    values = recorded("mysql", *(page.read_text() for page in pages))
    assert {name for name, _ in values} == {metric.name for metric in load("mysql").metrics}
    assert values["mysql_most_connections", ""] == 151.0
    assert values["mysql_slow_queries_per_s", ""] == 10 / LENGTH_S
    assert values["mysql_connection_errors_per_s", "max_connections"] == 0.0


# As the sources say it: names, labels and kinds; the numbers are made up.
MINIO_2019 = """
minio_http_requests_duration_seconds_bucket{request_type="PutObject",le="0.1"} 5
minio_http_requests_duration_seconds_bucket{request_type="PutObject",le="+Inf"} 10
minio_http_requests_duration_seconds_count{request_type="PutObject"} 10
minio_network_received_bytes_total 500
minio_disk_storage_total_bytes 2e+10
minio_disk_storage_available_bytes 5e+09
"""
MINIO_V2 = """
minio_s3_requests_total{api="putobject",server="a:9000"} 10
minio_s3_requests_5xx_errors_total{api="putobject",server="a:9000"} 5
minio_s3_requests_waiting_total{server="a:9000"} 2
minio_s3_requests_ttfb_seconds_distribution{api="putobject",server="a:9000",le="0.05"} 0
minio_s3_requests_ttfb_seconds_distribution{api="putobject",server="a:9000",le="0.1"} 10
minio_s3_requests_ttfb_seconds_distribution{api="putobject",server="a:9000",le="+Inf"} 10
minio_s3_traffic_received_bytes{server="a:9000"} 500
minio_cluster_capacity_usable_total_bytes{server="a:9000"} 2e+10
minio_cluster_capacity_usable_free_bytes{server="a:9000"} 5e+09
"""
MINIO_V3 = """
minio_api_requests_total{name="PutObject",type="s3",server="a:9000"} 10
minio_api_requests_5xx_errors_total{name="PutObject",type="s3",server="a:9000"} 5
minio_api_requests_waiting_total{type="s3",server="a:9000"} 2
minio_api_requests_ttfb_seconds_distribution{name="PutObject",type="s3",le="0.05",server="a:9000"} 0
minio_api_requests_ttfb_seconds_distribution{name="PutObject",type="s3",le="0.1",server="a:9000"} 10
minio_api_requests_ttfb_seconds_distribution{name="PutObject",type="s3",le="+Inf",server="a:9000"} 10
minio_api_requests_traffic_received_bytes{type="s3",server="a:9000"} 500
minio_cluster_health_capacity_usable_total_bytes 2e+10
minio_cluster_health_capacity_usable_free_bytes 5e+09
"""


@pytest.mark.parametrize("page", [MINIO_2019, MINIO_V2, MINIO_V3])
def test_every_generation_of_minio_exports_its_space_and_requests(page: str) -> None:
    values = recorded("minio", "", page)
    assert values["store_capacity_bytes", "minio"] == 2e10
    assert values["store_available_bytes", "minio"] == 5e9
    assert values["store_received_bytes_per_s", ""] == 100.0
    assert [value for (name, _), value in values.items() if name == "store_requests_per_s"] == [2.0]
    assert {name for name, _ in values} & {"store_request_s", "store_first_byte_s"}


@pytest.mark.parametrize("page", [MINIO_V2, MINIO_V3])
def test_minio_s_time_to_first_byte_is_a_histogram_without_suffix(page: str) -> None:
    assert recorded("minio", "", page)["store_first_byte_s", "0.5"] == pytest.approx(0.075)


def test_seaweedfs_exports_the_space_of_its_disks() -> None:
    page = "".join(
        f'SeaweedFS_volumeServer_resource{{name="/data",type="{kind}"}} {value}\n'
        for kind, value in (("all", 20), ("used", 4), ("free", 16), ("avail", 15))
    )
    values = recorded("seaweedfs", "", page)
    assert values == {("store_capacity_bytes", "/data"): 20.0, ("store_available_bytes", "/data"): 15.0}  # by disk


@pytest.mark.parametrize(
    "page",
    [
        'argo_workflows_pods_gauge{phase="Pending"} 7\nargo_workflows_gauge{phase="Running"} 3\nargo_workflows_pod_missing 5',
        'argo_workflows_pods_count{status="Pending"} 7\nargo_workflows_count{status="Running"} 3\nargo_pod_missing 5',
    ],
)
def test_argo_s_states_are_the_same_before_and_after_their_renaming(page: str) -> None:
    assert recorded("argo", "", page) == {
        ("argo_pods", "Pending"): 7.0, ("argo_workflows", "Running"): 3.0, ("argo_pods_missing_per_s", ""): 1.0,
    }  # fmt: skip


@pytest.mark.parametrize(
    "labelled", ["{name} 4", '{name}{{type="unschedulable"}} 4\n{name}{{type="scheduler_unprocessed"}} 9']
)
def test_pods_not_yet_seen_by_the_scheduler_are_not_unschedulable(labelled: str) -> None:
    page = labelled.format(name="cluster_autoscaler_unschedulable_pods_count")
    assert recorded("autoscaler", "", page) == {("autoscaler_unschedulable_pods", ""): 4.0}


@pytest.mark.parametrize(
    "series",
    ['apiserver_storage_objects{resource="workflows.argoproj.io"}', 'apiserver_resource_objects{group="argoproj.io",resource="workflows"}'],
)  # fmt: skip
def test_stored_workflows_are_counted_by_old_and_new_api_servers(series: str) -> None:
    (value,) = recorded("kube-state-metrics", "", f"{series} 1200").values()
    assert value == 1200.0


def test_the_size_of_etcd_is_found_at_a_real_api_server() -> None:
    values = recorded("kube-state-metrics", "", (FIXTURES / "kube_apiserver.txt").read_text())
    assert values == {("etcd_db_bytes", ""): 94_924_800.0}


def test_what_tells_the_limits_of_a_controller_is_found_at_a_real_one() -> None:
    values = recorded("argo", "", (FIXTURES / "argo_controller.txt").read_text())
    assert values["argo_working_workers", "workflow_queue"] == pytest.approx(1469.94 / LENGTH_S, rel=1e-4)
    assert {"argo_queue_wait_s", "argo_busy_workers", "argo_k8s_requests_per_s"} <= {name for name, _ in values}


# As the projects' references of metrics name them.
KUEUE = """
kueue_pending_workloads{cluster_queue="a",status="inadmissible"} 6
kueue_admitted_active_workloads{cluster_queue="a"} 2
kueue_admission_wait_time_seconds_bucket{cluster_queue="a",le="10"} 0
kueue_admission_wait_time_seconds_bucket{cluster_queue="a",le="20"} 8
kueue_admission_wait_time_seconds_bucket{cluster_queue="a",le="+Inf"} 8
"""
KUBELET = """
kubelet_image_pull_duration_seconds_bucket{image_size_in_bytes="1GB-5GB",le="30"} 0
kubelet_image_pull_duration_seconds_bucket{image_size_in_bytes="1GB-5GB",le="60"} 4
kubelet_image_pull_duration_seconds_bucket{image_size_in_bytes="1GB-5GB",le="+Inf"} 4
kubelet_pod_start_sli_duration_seconds_bucket{le="1"} 0
kubelet_pod_start_sli_duration_seconds_bucket{le="2"} 9
kubelet_pod_start_sli_duration_seconds_bucket{le="+Inf"} 9
"""
GPU = """
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1",Hostname="n1",pod="train",namespace="kubeflow"} 97
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-1",Hostname="n1",pod="train",namespace="kubeflow"} 30000
"""
KARPENTER = """
karpenter_scheduler_queue_depth 12
karpenter_nodeclaims_disrupted_total{nodepool="spot",reason="drifted"} 5
karpenter_cloudprovider_errors_total{controller="nodeclaim.lifecycle",error="InsufficientCapacityError"} 15
"""


@pytest.mark.parametrize(
    ("profile", "page", "values"),
    [
        ("kueue", KUEUE, {("kueue_pending_workloads", "a"): 6.0, ("kueue_admitted_workloads", "a"): 2.0,
                          ("kueue_admission_wait_s", "a"): 19.9}),
        ("kubelet", KUBELET, {("kubelet_pull_s", "1GB-5GB"): 59.7, ("kubelet_pod_start_sli_s", "0.5"): 1.5,
                              ("kubelet_pod_start_sli_s", "0.99"): 1.99}),
        ("gpu", GPU, {("gpu_used_percent", "n1"): 97.0, ("gpu_memory_used_mib", "n1"): 30000.0}),
        ("autoscaler", KARPENTER, {("karpenter_waiting_pods", ""): 12.0,
                                   ("karpenter_claims_disrupted_per_s", "spot"): 1.0,
                                   ("karpenter_cloud_errors_per_s", "InsufficientCapacityError"): 3.0}),
    ],
)  # fmt: skip
def test_each_metric_is_found_under_the_name_that_its_project_documents(
    profile: str, page: str, values: dict[tuple[str, str], float]
) -> None:
    assert recorded(profile, "", page) == pytest.approx(values)
