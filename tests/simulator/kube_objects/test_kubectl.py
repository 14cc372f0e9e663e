"""What operators do with `kubectl`."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from kubernetes import client as kubernetes

from tests.support.kubectl import pods_of
from tests.support.serving import Served


def test_kubectl_reads_the_objects_that_operators_need(kubectl: Any, core: kubernetes.CoreV1Api, run: str) -> None:
    pod = pods_of(core, run)[0].metadata.name
    assert pod in kubectl("get", "pods")
    assert re.search(r"training-\w{5}\s", kubectl("get", "workflows"))
    assert "Successfully assigned" in kubectl("get", "events", "-o", "custom-columns=MESSAGE:.message")
    assert "%" in kubectl("top", "nodes")
    assert "seaweedfs" in kubectl("top", "pods")
    described = kubectl("describe", "pod", pod)
    assert "Started container main" in described
    node = core.list_node().items[0].metadata.name
    described = kubectl("describe", "node", node)
    assert "Allocatable" in described
    assert "started" in kubectl("logs", pod, "-c", "main")


def test_kubectl_describes_quotas_and_claims(kubectl: Any, run: str) -> None:
    assert re.search(r"pods\s+\d+\s+500", kubectl("describe", "quota", "workflows"))
    namespace = kubectl("describe", "namespace", "kubeflow")
    assert re.search(r"Resource Quotas\s+Name:\s+workflows", namespace)
    assert re.search(r"Used By:\s+mysql-", kubectl("describe", "pvc", "mysql-pv-claim"))
    assert "1 desired | 1 updated" in kubectl("describe", "deployment", "mysql")
    assert re.search(r"workflow-controller\s+\d+m\s+\d+Mi", kubectl("top", "pods", "--containers"))


def test_kubectl_scales_a_node_pool(kubectl: Any) -> None:
    assert "pool" in kubectl("get", "machinedeployments", "-n", "kube-system")
    kubectl("scale", "machinedeployment", "pool", "-n", "kube-system", "--replicas", "3")
    assert len(kubectl("get", "nodes", "-o", "name").split()) == 3
    kubectl("scale", "machinedeployment", "pool", "-n", "kube-system", "--replicas", "2")
    assert len(kubectl("get", "nodes", "-o", "name").split()) == 2


def test_kubectl_scales_the_api_server(kubectl: Any) -> None:
    kubectl("scale", "deployment", "ml-pipeline", "--replicas", "2")
    kubectl("wait", "deployment/ml-pipeline", "--for=jsonpath={.status.readyReplicas}=2", "--timeout=20s")
    kubectl("scale", "deployment", "ml-pipeline", "--replicas", "1")
    assert kubectl("get", "pods", "-l", "app=ml-pipeline", "-o", "name").count("pod/") <= 2


def refused(platform: Served, *arguments: str) -> str:
    """What `kubectl` says when it ends with an error."""
    done = subprocess.run(
        ["kubectl", "--kubeconfig", platform.kubeconfig, *arguments],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode, done.stdout
    return done.stderr


def test_what_the_platform_has_not_is_refused_by_name(kubectl: Any, platform: Served, tmp_path: Path) -> None:
    manifest = tmp_path / "new.yaml"
    manifest.write_text(json.dumps({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "new"}}))
    for words in (("apply",), ("create",), ("create", "--dry-run=server")):
        assert "the simulated platform can't create persistentvolumeclaims" in refused(
            platform, *words, "-f", str(manifest)
        )
    tried = refused(platform, "scale", "deployment", "ml-pipeline", "--replicas=3", "--dry-run=server")
    assert "the simulated platform does not try changes" in tried
    assert "the simulated platform can't create pods" in refused(platform, "run", "new", "--image=none")
    manifest.write_text(kubectl("get", "configmap", "workflow-controller-configmap", "-o", "json"))
    server_side = refused(platform, "apply", "--server-side", "-f", str(manifest))
    assert "Server-side apply not available" in server_side


def test_kubectl_shows_events_and_pods_with_its_options(kubectl: Any, core: kubernetes.CoreV1Api, run: str) -> None:
    stamps = kubectl("get", "events", "--sort-by=.metadata.creationTimestamp", "-o", "jsonpath={..creationTimestamp}")
    assert stamps.split() == sorted(stamps.split())
    label = f"pipeline/runid={run}"
    printed = kubectl("get", "pods", "-l", label, "-o", "custom-columns=NAME:.metadata.name,PHASE:.status.phase")
    rows = [row.split() for row in printed.splitlines()]
    assert rows[0] == ["NAME", "PHASE"]
    assert {row[1] for row in rows[1:]} == {"Succeeded"}
    names = kubectl("get", "pods", "-l", label, "-o", "jsonpath={.items[*].metadata.name}").split()
    assert sorted(names) == sorted(pod.metadata.name for pod in pods_of(core, run))
    assert run in kubectl("get", "pods", "-L", "pipeline/runid", "-l", label)
    assert "No resources found" not in kubectl("top", "pods", "-l", "app=mysql", "--containers")


def test_kubectl_lists_types(kubectl: Any) -> None:
    assert "is running at" in kubectl("cluster-info")
    names = kubectl("api-resources", "-o", "name").split()
    assert {"pods", "services", "workflows.argoproj.io", "pods.metrics.k8s.io"} <= set(names)
    everything = kubectl("get", "all", "-o", "name")
    assert "deployment.apps/mysql" in everything
    assert "service/mysql" in everything


@pytest.mark.parametrize(
    "what",
    [
        "node", "pod", "deployment", "service", "pvc", "namespace", "event", "workflow", "quota", "machinedeployment",
        "configmap",
    ],
)  # fmt: skip
def test_kubectl_describes_every_kind(kubectl: Any, run: str, what: str) -> None:
    namespace = {"machinedeployment": "kube-system"}.get(what, "kubeflow")
    assert re.search(r"^Name:\s+\S", kubectl("describe", what, "-n", namespace), re.MULTILINE)


def test_kubectl_restarts_a_deployment(kubectl: Any, core: kubernetes.CoreV1Api) -> None:
    (before,) = core.list_namespaced_pod("kubeflow", label_selector="app=mysql").items
    kubectl("rollout", "restart", "deployment/mysql")
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/mysql", "--timeout=20s")
    kubectl("wait", f"pod/{before.metadata.name}", "--for=delete", "--timeout=40s")
    (after,) = core.list_namespaced_pod("kubeflow", label_selector="app=mysql").items
    assert after.metadata.owner_references[0].name != before.metadata.owner_references[0].name


def test_kubectl_sets_a_components_environment_and_takes_it_back(kubectl: Any, core: kubernetes.CoreV1Api) -> None:
    def environment() -> str:
        return str(kubectl("set", "env", "deployment/ml-pipeline", "--list"))

    assert "CLIENTQPS" not in environment()
    kubectl("set", "env", "deployment/ml-pipeline", "CLIENTQPS=50")
    assert "successfully rolled out" in kubectl("rollout", "status", "deployment/ml-pipeline", "--timeout=20s")
    assert "CLIENTQPS=50" in environment()
    (pod,) = (
        each
        for each in core.list_namespaced_pod("kubeflow", label_selector="app=ml-pipeline").items
        if each.metadata.deletion_timestamp is None
    )
    assert {each.name: each.value for each in pod.spec.containers[0].env}["CLIENTQPS"] == "50"
    kubectl("set", "env", "deployment/ml-pipeline", "CLIENTQPS-")
    kubectl("rollout", "status", "deployment/ml-pipeline", "--timeout=20s")
    assert "CLIENTQPS" not in environment()


def test_kubectl_adds_arguments_to_the_workflow_controller(kubectl: Any) -> None:
    place = "/spec/template/spec/containers/0/args/-"
    patch = json.dumps([{"op": "add", "path": place, "value": "--qps=100"}])
    kubectl("patch", "deployment", "workflow-controller", "--type=json", "-p", patch)
    described = kubectl("describe", "deployment/workflow-controller")
    assert re.search(r"Args:\s+--configmap\s+workflow-controller-configmap\s", described)
    assert re.search(r"\s--qps=100\s", described)


def test_the_controllers_configuration_bounds_how_many_workflows_run(kubectl: Any) -> None:
    assert "workflow-controller-configmap" in kubectl("get", "cm")
    kubectl("patch", "cm", "workflow-controller-configmap", "-p", '{"data": {"namespaceParallelism": "7"}}')
    assert 'namespaceParallelism: "7"' in kubectl("get", "cm", "workflow-controller-configmap", "-o", "yaml")
    kubectl("patch", "cm", "workflow-controller-configmap", "-p", '{"data": {"namespaceParallelism": null}}')


def test_kubectl_reads_logs_with_its_options(
    kubectl: Any, platform: Served, core: kubernetes.CoreV1Api, run: str
) -> None:
    pod = next(pod.metadata.name for pod in pods_of(core, run) if "impl" in pod.metadata.name)
    whole = kubectl("logs", pod).splitlines()
    assert len(whole) == 6
    assert all(re.match(r"[IWEF]\d{4} \d\d:\d\d:\d\d\.\d{6} +1 \w+\.go:\d+\] ", line) for line in whole)
    assert "Executing uploadOutputArtifacts attempt: 1" in whole[2]
    assert kubectl("logs", pod, "--tail=1").splitlines() == whole[-1:]
    assert kubectl("logs", pod, "--tail=0") == ""
    assert re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z I\d{4} ", kubectl("logs", pod, "--timestamps"))
    assert kubectl("logs", pod, "--limit-bytes=7") == whole[0][:7]
    assert kubectl("logs", pod, "--since=1h").splitlines() == whole
    assert "wait started" in kubectl("logs", pod, "-c", "wait")
    assert len(kubectl("logs", pod, "--all-containers").splitlines()) == 12
    assert "previous terminated container" in refused(platform, "logs", pod, "--previous")
    assert "not valid for pod" in refused(platform, "logs", pod, "-c", "none")
    assert '"none" not found' in refused(platform, "logs", "none")


def test_kubectl_gets_an_error_for_impossible_requests(kubectl: Any, platform: Served) -> None:
    for arguments, said in (
        (("get", "pod", "none"), 'pods "none" not found'),
        (("get", "nothing"), "doesn't have a resource type"),
        (("get", "pods", "--field-selector=colour=red"), "field label not supported: colour"),
        (("get", "pods", "-l", "a in"), "unable to parse requirement"),
        (("delete", "deployment", "mysql"), "cannot change it"),
        (("set", "image", "deployment/mysql", "mysql=mysql:9"), "cannot change it"),
        (("set", "env", "deployment/ml-pipeline", "CLIENTQPS=many"), "could not convert string"),
        (("patch", "cm", "workflow-controller-configmap", "-p", '{"data":{"parallelism":"x"}}'), "invalid literal"),
        (("label", "deployment", "mysql", "a=b"), "can't change metadata.labels"),
        (("label", "service", "mysql", "a=b"), "can't change metadata.labels"),
        (("create", "namespace", "new"), "can't create namespaces"),
        (("scale", "deployment", "mysql", "--current-replicas=5", "--replicas=2"), "Expected replicas to be 5"),
        (("wait", "deployment/mysql", "--for=condition=Nothing", "--timeout=1s"), "timed out waiting"),
        (("top", "pod", "none"), '"none" not found'),
    ):
        assert said in refused(platform, *arguments), arguments
    assert json.loads(kubectl("get", "deployment", "mysql", "-o", "json"))["spec"]["replicas"] == 1
