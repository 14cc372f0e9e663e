"""What the simulated operator makes of clients' objects, as the Kubernetes API shows it."""

import pytest

from harness.simulator.engine.distributions import fixed
from harness.simulator.kube_api import ApiError
from harness.simulator.profile import Autoscaler, Kubelet, Quota, Tenant
from harness.targets.dask_tenants.objects import Recipe, dask_autoscaler, dask_cluster, resources_of, stage_pod
from tests.support.dask_platform import DaskPlatform
from tests.support.platforms import pool

RECIPE = Recipe("image", resources_of("cpu=1"), ("dask-worker",), "t1", 900)
WORK = {"tasks": 4, "task_s": 10.0, "variation": 0.0}
QUICK = Kubelet(start=fixed(0.0), pull_overhead_s=0.0, pull_bytes_per_s=1e15, termination_s=1.0)


def a_cluster(width: int = 2, *pools, **settings) -> DaskPlatform:
    platform = DaskPlatform(*(pools or (pool(cpu=64.0),)), kubelet=QUICK, **settings)
    platform.create("DaskCluster", "team-a", dask_cluster(RECIPE, "team-a", "mine"))
    platform.pause(2.0)
    platform.create("DaskAutoscaler", "team-a", dask_autoscaler(RECIPE, "team-a", "mine", width))
    platform.pause(6.0)
    return platform


def compute(platform: DaskPlatform) -> None:
    shown = platform.objects("DaskCluster")["mine"]
    platform.create("Pod", "team-a", stage_pod(RECIPE, "team-a", shown, 2, WORK))


def phases(platform: DaskPlatform) -> list[str]:
    return sorted(
        f"{pod['metadata']['labels']['dask.org/component']} {pod['status']['phase']}"
        for pod in platform.objects("Pod", "team-a").values()
    )


def test_a_cluster_has_the_objects_names_and_labels_of_the_real_operator():
    platform = a_cluster()
    found = platform.objects("DaskCluster")["mine"]
    assert (found["status"]["phase"], found["spec"]["worker"]["replicas"]) == ("Running", 2)
    group = platform.objects("DaskWorkerGroup")["mine-default"]
    assert group["spec"]["worker"]["replicas"] == 2
    assert group["metadata"]["labels"] == {"dask.org/cluster-name": "mine", "dask.org/component": "workergroup"}
    deployments = platform.objects("Deployment", "team-a")
    assert "mine-scheduler" in deployments
    workers = [name for name in deployments if name.startswith("mine-default-worker-")]
    assert len(workers) == 2
    assert {each["status"].get("readyReplicas") for each in deployments.values()} == {1}
    for name, pod in platform.objects("Pod", "team-a").items():
        labels = pod["metadata"]["labels"]
        assert labels["dask.org/cluster-name"] == "mine"
        assert name.startswith("mine-scheduler-" if labels["dask.org/component"] == "scheduler" else tuple(workers))
        assert pod["metadata"]["ownerReferences"][0]["kind"] == "ReplicaSet"
    assert "team-a" in platform.objects("Namespace")


def test_an_autoscaler_waits_for_the_scheduler():
    platform = DaskPlatform(pool(cpu=64.0), kubelet=Kubelet(start=fixed(12.0), image_bytes=1.0))
    platform.create("DaskCluster", "team-a", dask_cluster(RECIPE, "team-a", "mine"))
    platform.create("DaskAutoscaler", "team-a", dask_autoscaler(RECIPE, "team-a", "mine", 2))
    platform.pause(11.0)
    assert phases(platform) == ["scheduler Pending"]
    platform.pause(10.0)
    assert phases(platform) == ["scheduler Running", "worker Pending", "worker Pending"]


def test_the_stage_ends_when_its_tasks_are_over():
    platform = a_cluster()
    compute(platform)
    platform.pause(19.0)
    assert "stage Running" in phases(platform)
    platform.pause(2.0)  # 4 tasks of 10 s on 2 workers
    assert "stage Succeeded" in phases(platform)


def test_a_worker_that_is_lost_is_replaced_and_its_task_done_again():
    platform = a_cluster()
    compute(platform)
    platform.pause(5.0)
    cluster = platform.platform.cluster
    worker = next(pod for pod in cluster.pods.values() if pod.role == "worker")
    cluster.kubelet.delete(worker, 0.0)
    platform.pause(19.0)  # the other one takes 5 s more, and the replacement begins at once
    assert [each for each in phases(platform) if each.startswith("worker")] == ["worker Running"] * 2
    assert worker.name not in platform.objects("Pod", "team-a")
    assert "stage Running" in phases(platform)
    platform.pause(2.0)
    assert "stage Succeeded" in phases(platform)


def test_all_that_belongs_to_a_cluster_goes_with_it():
    platform = a_cluster()
    compute(platform)
    platform.pause(5.0)
    platform.delete("DaskCluster", "team-a", "mine")
    platform.pause(2.0)
    for kind in ("DaskCluster", "DaskWorkerGroup", "DaskAutoscaler"):
        assert platform.objects(kind) == {}
    assert platform.objects("Pod", "team-a") == {}
    assert platform.objects("Deployment", "team-a") == {}
    platform.pause(30.0)
    assert platform.objects("Pod", "team-a") == {}, "nothing is made again"


def test_a_cluster_is_scaled_by_its_replicas_and_down_too():
    platform = DaskPlatform(pool(cpu=64.0), kubelet=QUICK)
    platform.create("DaskCluster", "team-a", dask_cluster(RECIPE, "team-a", "mine"))
    for replicas in (3, 1):
        platform.patch("daskclusters", "team-a", "mine", {"spec": {"worker": {"replicas": replicas}}})
        platform.pause(3.0)
        assert phases(platform) == ["scheduler Running", *["worker Running"] * replicas]
    with pytest.raises(ApiError, match=r"only changes spec.worker.replicas"):
        platform.patch("daskclusters", "team-a", "mine", {"spec": {"idleTimeout": 3}})


@pytest.mark.parametrize(
    ("kind", "document", "why"),
    [
        ("DaskCluster", {"metadata": {"name": "a"}}, "spec: Required value"),
        ("DaskCluster", {"metadata": {"name": "a"}, "spec": {"worker": {"spec": {}}}}, "containers: Required value"),
        ("DaskAutoscaler", {"metadata": {"name": "a"}, "spec": {"cluster": "no"}}, "not found"),
        ("DaskWorkerGroup", {"metadata": {"name": "a"}, "spec": {}}, "can't create daskworkergroups"),
        ("Pod", {"metadata": {"name": "a"}, "spec": {}}, "can't create pods"),
    ],
)
def test_what_the_operator_would_not_take_is_refused_with_the_field(kind, document, why):
    with pytest.raises(ApiError, match=why):
        DaskPlatform().create(kind, "team-a", document)


@pytest.mark.parametrize(
    "words", [["--tasks=0"], ["--tasks=1e9"], ["--task-s=-1"], ["--task-s=nan"], ["--variation=2"]]
)
def test_a_stage_with_impossible_tasks_is_refused(words):
    platform = a_cluster()
    pod = stage_pod(RECIPE, "team-a", platform.objects("DaskCluster")["mine"], 2, WORK)
    pod["spec"]["containers"][0]["args"] += words
    with pytest.raises(ApiError, match="invalid"):
        platform.create("Pod", "team-a", pod)


def test_gpus_of_a_new_node_can_be_allocated_when_its_drivers_are_installed():
    machines = pool("gpu", cpu=8.0, gpu=2, initial=0, max=3, driver=fixed(30.0))
    platform = DaskPlatform(
        pool(cpu=8.0), machines, kubelet=QUICK, autoscaler=Autoscaler(scan_s=1.0, provisioning=fixed(20.0))
    )
    with_gpu = Recipe("image", resources_of("cpu=1,nvidia.com/gpu=1"), ("dask-worker",), "", 900)
    platform.create("DaskCluster", "team-a", dask_cluster(with_gpu, "team-a", "mine"))

    def gpu_nodes() -> list[tuple[bool, str]]:
        found = [each for name, each in platform.objects("Node").items() if "-gpu-" in name]
        return [
            (
                any((c["type"], c["status"]) == ("Ready", "True") for c in each["status"]["conditions"]),
                each["status"]["allocatable"].get("nvidia.com/gpu", "0"),
            )
            for each in found
        ]

    platform.pause(25.0)
    assert gpu_nodes() == [(True, "0")]
    assert phases(platform) == ["scheduler Pending"]
    platform.pause(24.0)
    assert gpu_nodes() == [(True, "0")], "the autoscaler waits for the drivers instead of adding another node"
    platform.pause(4.0)
    assert gpu_nodes() == [(True, "2")]
    assert phases(platform) == ["scheduler Running"]


def tight(**limits: int) -> dict[str, object]:
    """A quota of team-a, as settings of a platform."""
    return {"tenants": (Tenant("team-a", quota=Quota(**limits)),)}


def test_a_worker_that_the_quota_refuses_is_created_when_there_is_room():
    platform = a_cluster(2, **tight(pods=2))
    assert phases(platform) == ["scheduler Running", "worker Running"]
    refused = [each for each in platform.objects("Deployment", "team-a").values() if "conditions" in each["status"]]
    (condition,) = refused[0]["status"]["conditions"]
    assert len(refused) == 1
    assert (condition["type"], condition["reason"]) == ("ReplicaFailure", "FailedCreate")
    words = "exceeded quota: kf-resource-quota, requested: pods=1, used: pods=2, limited: pods=2"
    assert condition["message"].endswith(f" is forbidden: {words}")
    events = [each for each in platform.objects("Event").values() if each["reason"] == "FailedCreate"]
    assert len(events) > 1
    assert events[0]["message"] == f"Error creating: {condition['message']}"
    assert events[0]["involvedObject"]["kind"] == "ReplicaSet"
    platform.patch("resourcequotas", "team-a", "kf-resource-quota", {"spec": {"hard": {"pods": "3"}}})
    platform.pause(30.0)
    assert phases(platform) == ["scheduler Running", "worker Running", "worker Running"]
    shown = platform.objects("Deployment", "team-a").values()
    assert not any("conditions" in each["status"] for each in shown)


def test_a_stage_that_the_quota_refuses_is_refused_to_its_client():
    platform = a_cluster(1, **tight(pods=2))
    with pytest.raises(ApiError, match=r'^pods ".*" is forbidden: exceeded quota: kf-resource-quota') as refused:
        compute(platform)
    assert refused.value.code == 403


def test_a_closed_cluster_gives_its_quota_back_and_creates_no_refused_pod_later():
    platform = a_cluster(3, **tight(pods=2))
    platform.delete("DaskCluster", "team-a", "mine")
    platform.pause(60.0)
    assert phases(platform) == []
    (quota,) = platform.objects("ResourceQuota", "team-a").values()
    assert quota["status"]["used"] == {"pods": "0"}


def test_a_surplus_worker_that_was_refused_is_not_created_later():
    platform = a_cluster(3, **tight(pods=3))
    platform.patch("daskclusters", "team-a", "mine", {"spec": {"worker": {"replicas": 1}}})
    platform.delete("DaskAutoscaler", "team-a", "mine")
    platform.pause(60.0)
    assert phases(platform) == ["scheduler Running", "worker Running"]
