"""The simulated platform through the real Kubernetes client, and plain scrapes."""

import json
import re
import time
from pathlib import Path

import kfp
import pytest
from kubernetes import client as kubernetes
from kubernetes import watch

from tests.support.kubectl import fetch, finished, pods_of, started
from tests.support.serving import Served


def test_a_runs_pods_are_found_by_its_label_and_named_as_argo_names_them(core: kubernetes.CoreV1Api, run: str) -> None:
    pods = pods_of(core, run)
    assert len(pods) == 7
    workflow = pods[0].metadata.labels["workflows.argoproj.io/workflow"]
    nodes = {pod.metadata.annotations["workflows.argoproj.io/node-name"]: pod for pod in pods}
    assert nodes.keys() == {
        f"{workflow}(0).{path}(0)"
        for path in (
            "root-driver", "root(0).prepare-driver", "root(0).prepare(0).executor", "root(0).train-driver",
            "root(0).train(0).executor", "root(0).evaluate-driver", "root(0).evaluate(0).executor",
        )
    }  # fmt: skip
    train = nodes[f"{workflow}(0).root(0).train(0).executor(0)"]
    assert re.fullmatch(rf"{workflow}-system-container-impl-\d+", train.metadata.name)
    assert train.spec.containers[1].resources.requests == {"cpu": "1", "memory": "1Gi"}
    assert train.metadata.owner_references[0].kind == "Workflow"


def test_a_finished_pods_status_has_all_phases_in_order(core: kubernetes.CoreV1Api, run: str) -> None:
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
    for _ in range(10):  # on a busy machine a pod may be over before it is deleted
        run_id = started(pipelines, training)
        deadline = time.monotonic() + 30
        while not (found := [pod for pod in pods_of(core, run_id) if "container-impl" in pod.metadata.name]):
            assert time.monotonic() < deadline
        core.delete_namespaced_pod(found[0].metadata.name, "kubeflow", grace_period_seconds=0)
        while (state := pipelines.get_run(run_id).state) not in {"SUCCEEDED", "FAILED"}:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert state == "SUCCEEDED"
        names = {pod.metadata.name for pod in pods_of(core, run_id)}
        assert found[0].metadata.name not in names
        if len(names) == 7:
            return
    pytest.fail("no deleted pod was made again")


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


def test_the_client_reaches_a_kubelet_through_the_proxy(core: kubernetes.CoreV1Api) -> None:
    node = core.list_node().items[0].metadata.name
    assert "container_cpu_usage_seconds_total" in core.connect_get_node_proxy_with_path(node, "metrics/cadvisor")
    assert node in str(core.connect_get_node_proxy_with_path(node, "stats/summary"))
    with pytest.raises(kubernetes.ApiException) as refused:
        core.connect_get_node_proxy_with_path(node, "metrics/none")
    assert refused.value.status == 404


def test_the_client_reads_logs_services_scales_and_its_own_rights(core: kubernetes.CoreV1Api, run: str) -> None:
    pod = pods_of(core, run)[0].metadata.name
    assert "exit code 0" in core.read_namespaced_pod_log(pod, "kubeflow", container="main", tail_lines=1)
    ports = {each.metadata.name: each.spec.ports[0].port for each in core.list_namespaced_service("kubeflow").items}
    assert (ports["ml-pipeline"], ports["mysql"]) == (8888, 3306)
    apps = kubernetes.AppsV1Api(core.api_client)
    assert apps.read_namespaced_deployment_scale("mysql", "kubeflow").spec.replicas == 1
    asked = {"spec": {"resourceAttributes": {"verb": "list", "resource": "pods"}}}
    assert kubernetes.AuthorizationV1Api(core.api_client).create_self_subject_access_review(asked).status.allowed


@pytest.mark.parametrize("replicas", [-1, 10**9, "many", None])
def test_an_invalid_number_of_replicas_is_refused(core: kubernetes.CoreV1Api, replicas: object) -> None:
    with pytest.raises(kubernetes.ApiException) as refused:
        kubernetes.AppsV1Api(core.api_client).patch_namespaced_deployment(
            "mysql", "kubeflow", [{"op": "replace", "path": "/spec/replicas", "value": replicas}]
        )
    assert refused.value.status == 400
