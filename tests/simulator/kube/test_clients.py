"""The simulated platform through the real Kubernetes client, kubectl, and plain scrapes."""

import json
import re
import shutil
import subprocess
import time
import urllib.request
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import kfp
import pytest
from kubernetes import client as kubernetes
from kubernetes import config, watch

from tests.simulator.conftest import QUICK, Serve, Served


@pytest.fixture(scope="module")
def platform(serve: Serve) -> Served:
    return serve(profile=QUICK + "quota: {pods: 500}\n")


@pytest.fixture(scope="module")
def core(platform: Served) -> kubernetes.CoreV1Api:
    return kubernetes.CoreV1Api(config.new_client_from_config(platform.kubeconfig))


@pytest.fixture(scope="module")
def pipelines(platform: Served) -> kfp.Client:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return kfp.Client(host=platform.url)


@pytest.fixture
def run(pipelines: kfp.Client, training: Path) -> str:
    """A run that is over."""
    return finished(pipelines, training)


def started(pipelines: kfp.Client, training: Path) -> str:
    experiment = pipelines.create_experiment(f"e-{uuid4()}").experiment_id
    made = pipelines.run_pipeline(experiment, "run", pipeline_package_path=str(training), enable_caching=False)
    return str(made.run_id)


def finished(pipelines: kfp.Client, training: Path) -> str:
    run_id, deadline = started(pipelines, training), time.monotonic() + 30
    while pipelines.get_run(run_id).state not in {"SUCCEEDED", "FAILED"}:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return run_id


def pods_of(core: kubernetes.CoreV1Api, run_id: str, **more: str) -> list[Any]:
    return list(core.list_namespaced_pod("kubeflow", label_selector=f"pipeline/runid={run_id}", **more).items)


def fetch(platform: Served, path: str) -> str:
    with urllib.request.urlopen(platform.url + path) as answer:
        return str(answer.read().decode())


def test_a_runs_pods_are_found_by_its_label_and_named_as_argo_names_them(core: kubernetes.CoreV1Api, run: str) -> None:
    pods = pods_of(core, run)
    assert len(pods) == 7
    workflow = pods[0].metadata.labels["workflows.argoproj.io/workflow"]
    nodes = {pod.metadata.annotations["workflows.argoproj.io/node-name"]: pod for pod in pods}
    assert nodes.keys() == {
        f"{workflow}.{path}"
        for path in (
            "root-driver", "root.prepare-driver", "root.prepare.executor", "root.train-driver", "root.train.executor",
            "root.evaluate-driver", "root.evaluate.executor",
        )
    }  # fmt: skip
    train = nodes[f"{workflow}.root.train.executor"]
    assert re.fullmatch(rf"{workflow}-system-container-impl-\d+", train.metadata.name)
    assert train.spec.containers[1].resources.requests == {"cpu": "1", "memory": "1Gi"}
    assert train.metadata.owner_references[0].kind == "Workflow"


def test_a_finished_pods_status_tells_its_whole_life_in_order(core: kubernetes.CoreV1Api, run: str) -> None:
    for pod in pods_of(core, run):
        conditions = {each.type: each for each in pod.status.conditions}
        assert conditions["PodScheduled"].status == "True"
        assert conditions["Ready"].reason == "PodCompleted"
        containers = {each.name: each.state.terminated for each in pod.status.container_statuses}
        stamps = [
            pod.metadata.creation_timestamp,
            conditions["PodScheduled"].last_transition_time,
            containers["main"].started_at,
            containers["main"].finished_at,
            containers["wait"].finished_at,
        ]
        assert stamps == sorted(stamps)
        assert all(stamp.microsecond == 0 for stamp in stamps)
        assert (pod.status.phase, containers["main"].exit_code) == ("Succeeded", 0)


def test_pods_of_a_run_use_the_nodes_that_are_there(core: kubernetes.CoreV1Api, run: str) -> None:
    nodes = {node.metadata.name: node for node in core.list_node().items}
    assert len(nodes) == 2
    for node in nodes.values():
        assert node.status.allocatable["cpu"] == "15860m"
        assert node.status.capacity["cpu"] == "16"
        assert node.metadata.labels["agentpool"] == "pool"
        assert [each.status for each in node.status.conditions if each.type == "Ready"] == ["True"]
    assert {pod.spec.node_name for pod in pods_of(core, run)} <= nodes.keys()
    on_first = core.list_pod_for_all_namespaces(field_selector=f"spec.nodeName={min(nodes)}").items
    assert {pod.spec.node_name for pod in on_first} == {min(nodes)}


def test_the_events_of_a_pod_are_those_of_a_real_cluster(core: kubernetes.CoreV1Api, run: str) -> None:
    pod = next(pod for pod in pods_of(core, run) if "container-impl" in pod.metadata.name)
    selector = f"involvedObject.name={pod.metadata.name}"
    events = core.list_namespaced_event("kubeflow", field_selector=selector).items
    reasons = [event.reason for event in events]
    assert [each for each in reasons if each != "Pulling"] == ["Scheduled", "Pulled", "Created", "Started"]
    scheduled = events[0]
    assert scheduled.message == f"Successfully assigned kubeflow/{pod.metadata.name} to {pod.spec.node_name}"
    assert scheduled.event_time is not None
    assert all(event.involved_object.uid == pod.metadata.uid for event in events)


def test_a_watch_sees_a_run_from_its_first_pod_to_its_last_phase(
    core: kubernetes.CoreV1Api, pipelines: kfp.Client, training: Path
) -> None:
    before = core.list_namespaced_pod("kubeflow").metadata.resource_version
    run_id = finished(pipelines, training)
    phases: dict[str, list[str]] = {}
    stream = watch.Watch().stream(
        core.list_namespaced_pod, "kubeflow", resource_version=before, timeout_seconds=1,
        label_selector=f"pipeline/runid={run_id}",
    )  # fmt: skip
    for event in stream:
        seen = phases.setdefault(event["object"].metadata.name, [])
        if event["object"].status.phase not in seen:
            seen.append(event["object"].status.phase)
    assert len(phases) == 7
    assert all(seen == ["Pending", "Running", "Succeeded"] for seen in phases.values())


def test_a_deleted_pod_is_made_again(core: kubernetes.CoreV1Api, pipelines: kfp.Client, training: Path) -> None:
    run_id = started(pipelines, training)
    deadline = time.monotonic() + 20
    while not (found := [pod for pod in pods_of(core, run_id) if "container-impl" in pod.metadata.name]):
        assert time.monotonic() < deadline
    core.delete_namespaced_pod(found[0].metadata.name, "kubeflow", grace_period_seconds=0)
    while pipelines.get_run(run_id).state not in {"SUCCEEDED", "FAILED"}:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert pipelines.get_run(run_id).state == "SUCCEEDED"
    assert found[0].metadata.name not in {pod.metadata.name for pod in pods_of(core, run_id)}
    assert len(pods_of(core, run_id)) == 7


def test_a_cordoned_node_gets_no_pods(core: kubernetes.CoreV1Api, pipelines: kfp.Client, training: Path) -> None:
    name = min(node.metadata.name for node in core.list_node().items)
    core.patch_node(name, {"spec": {"unschedulable": True}})
    try:
        assert {pod.spec.node_name for pod in pods_of(core, finished(pipelines, training))}.isdisjoint({name})
        tainted = core.read_node(name).spec.taints
        assert [taint.key for taint in tainted] == ["node.kubernetes.io/unschedulable"]
    finally:
        core.patch_node(name, {"spec": {"unschedulable": False}})
    assert core.read_node(name).spec.unschedulable in {None, False}


def test_a_larger_volume_is_more_room_in_the_store(core: kubernetes.CoreV1Api, platform: Served) -> None:
    def capacity() -> int:
        seaweed = core.list_namespaced_pod("kubeflow", label_selector="app=seaweedfs").items[0]
        summary = json.loads(fetch(platform, f"/api/v1/nodes/{seaweed.spec.node_name}/proxy/stats/summary"))
        volumes = [volume for pod in summary["pods"] for volume in pod.get("volume", ())]
        volume = next(each for each in volumes if each["pvcRef"]["name"] == "seaweedfs-pvc")
        assert volume["usedBytes"] + volume["availableBytes"] == volume["capacityBytes"]
        return int(volume["capacityBytes"])

    assert capacity() == 20 * 2**30
    bigger = {"spec": {"resources": {"requests": {"storage": "30Gi"}}}}
    core.patch_namespaced_persistent_volume_claim("seaweedfs-pvc", "kubeflow", bigger)
    assert capacity() == 30 * 2**30
    smaller = {"spec": {"resources": {"requests": {"storage": "1Gi"}}}}
    with pytest.raises(kubernetes.ApiException) as refused:
        core.patch_namespaced_persistent_volume_claim("seaweedfs-pvc", "kubeflow", smaller)
    assert refused.value.status == 422


def test_components_expose_metrics_by_their_own_names(core: kubernetes.CoreV1Api, platform: Served, run: str) -> None:
    api = fetch(platform, "/metrics")
    assert 'grpc_server_handled_total{grpc_method="CreateRun"' in api
    assert re.search(r"^run_server_create_requests [1-9]", api, re.MULTILINE)
    proxied = "/api/v1/namespaces/kubeflow/services/{}/proxy/metrics"
    assert 'argo_workflows_gauge{phase="Running"} 0' in fetch(
        platform, proxied.format("workflow-controller-metrics:9090")
    )
    assert 'SeaweedFS_s3_request_total{type="PUT",code="200"' in fetch(platform, proxied.format("seaweedfs:9000"))
    node = core.list_namespaced_pod("kubeflow", label_selector="app=seaweedfs").items[0].spec.node_name
    kubelet = fetch(platform, f"/api/v1/nodes/{node}/proxy/metrics")
    assert 'kubelet_volume_stats_available_bytes{namespace="kubeflow",persistentvolumeclaim="seaweedfs-pvc"}' in kubelet


@pytest.fixture(scope="module")
def kubectl(platform: Served) -> Iterator[Any]:
    if shutil.which("kubectl") is None:
        pytest.skip("kubectl is not installed")

    def call(*arguments: str) -> str:
        command = ["kubectl", "--kubeconfig", platform.kubeconfig, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return call


def test_kubectl_reads_what_operators_read(kubectl: Any, core: kubernetes.CoreV1Api, run: str) -> None:
    pod = pods_of(core, run)[0].metadata.name
    assert "Ready" in kubectl("get", "nodes", "-o", "wide")
    assert re.search(rf"{pod}\s+0/2\s+Completed", kubectl("get", "pods"))
    assert "20Gi" in kubectl("get", "pvc") or "30Gi" in kubectl("get", "pvc")
    assert re.search(r"ml-pipeline\s+1/1", kubectl("get", "deployments"))
    assert re.search(r"training-\w{5}\s+Succeeded", kubectl("get", "workflows"))
    assert "Successfully assigned" in kubectl("get", "events")
    assert "%" in kubectl("top", "nodes")
    assert "seaweedfs" in kubectl("top", "pods")
    described = kubectl("describe", "pod", pod)
    assert "Started container main" in described
    node = core.list_node().items[0].metadata.name
    described = kubectl("describe", "node", node)
    assert "Allocatable" in described
    assert re.search(rf"HolderIdentity:\s+{node}\s", described)
    assert re.search(r"RenewTime:\s+\w{3}, ", described)
    assert "started" in kubectl("logs", pod, "-c", "main")


def test_kubectl_describes_what_bounds_and_holds_the_platform(kubectl: Any, run: str) -> None:
    assert re.search(r"workflows\s+\S+\s+pods: \d+/500", kubectl("get", "quota"))
    assert re.search(r"pods\s+\d+\s+500", kubectl("describe", "quota", "workflows"))
    namespace = kubectl("describe", "namespace", "kubeflow")
    assert re.search(r"Resource Quotas\s+Name:\s+workflows", namespace)
    assert re.search(r"Used By:\s+mysql-", kubectl("describe", "pvc", "mysql-pv-claim"))
    assert "1 desired | 1 updated" in kubectl("describe", "deployment", "mysql")
    assert re.search(r"system-cluster-critical\s+2000000000\s+false", kubectl("get", "priorityclasses"))
    assert re.search(r"main\s+\d+m\s+\d+Mi", kubectl("top", "pods", "--containers"))


def test_kubectl_scales_a_node_pool(kubectl: Any) -> None:
    assert re.search(r"pool\s+simulated\s+2\s+2", kubectl("get", "machinedeployments", "-n", "kube-system"))
    kubectl("scale", "machinedeployment", "pool", "-n", "kube-system", "--replicas", "3")
    assert len(kubectl("get", "nodes", "-o", "name").split()) == 3
    kubectl("scale", "machinedeployment", "pool", "-n", "kube-system", "--replicas", "2")
    assert len(kubectl("get", "nodes", "-o", "name").split()) == 2


def test_kubectl_scales_the_api_server(kubectl: Any) -> None:
    kubectl("scale", "deployment", "ml-pipeline", "--replicas", "2")
    kubectl("wait", "deployment/ml-pipeline", "--for=jsonpath={.status.readyReplicas}=2", "--timeout=20s")
    assert re.search(r"ml-pipeline\s+2/2", kubectl("get", "deployments"))
    kubectl("scale", "deployment", "ml-pipeline", "--replicas", "1")
    assert kubectl("get", "pods", "-l", "app=ml-pipeline", "-o", "name").count("pod/") <= 2
