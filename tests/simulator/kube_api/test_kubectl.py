"""`kubectl` against the API."""

import json
import os
import shutil
import subprocess

import pytest

from tests.support.kube_cluster import Server

KUBECTL = shutil.which("kubectl")

pytestmark = pytest.mark.skipif(KUBECTL is None, reason="there is no kubectl on the PATH")


def kubectl(server: Server, *words: str) -> str:
    """What it prints; fails when it complains, even by a warning."""
    assert KUBECTL is not None
    cache = server.kubeconfig.parent / "cache"
    environment = {**os.environ, "KUBECONFIG": str(server.kubeconfig), "KUBECACHEDIR": str(cache)}
    answer = subprocess.run([KUBECTL, *words], capture_output=True, text=True, env=environment, timeout=60, check=False)
    assert (answer.returncode, answer.stderr) == (0, ""), f"{answer.stdout}\n{answer.stderr}"
    return answer.stdout


def _rows(printed: str) -> list[list[str]]:
    return [line.split() for line in printed.splitlines()]


def test_names_are_printed_of_one_or_all_namespaces(server: Server) -> None:
    header, *pods = _rows(kubectl(server, "get", "pods", "-l", "app=x"))
    assert header == ["NAME", "AGE"]
    assert [row[0] for row in pods] == ["p1", "p3"]
    everywhere = _rows(kubectl(server, "get", "po", "-A", "--chunk-size=2"))
    assert [row[0] for row in everywhere] == ["NAMESPACE"] + ["default"] * 5


def test_objects_come_as_json_and_yaml(server: Server) -> None:
    listed = json.loads(kubectl(server, "get", "pods", "-o", "json"))
    assert [each["metadata"]["name"] for each in listed["items"]] == ["p0", "p1", "p2", "p3", "p4"]
    assert {(each["apiVersion"], each["kind"]) for each in listed["items"]} == {("v1", "Pod")}
    assert "name: node-0\n" in kubectl(server, "get", "node", "node-0", "-o", "yaml")
    assert kubectl(server, "get", "pods", "-o", "jsonpath={.items[0].spec.nodeName}") == "node-0"


def test_types_have_short_names_and_categories(server: Server) -> None:
    assert kubectl(server, "get", "wf", "-n", "kubeflow", "-o", "name") == "workflow.argoproj.io/wf-1\n"
    assert "namespace/kubeflow\n" in kubectl(server, "get", "ns", "-o", "name")
    assert "deployment.apps/web" in kubectl(server, "get", "all", "-o", "name")


def test_usage_is_printed(server: Server) -> None:
    assert _rows(kubectl(server, "top", "nodes"))[1] == ["node-0", "250m", "6%", "512Mi", "3%"]
    assert _rows(kubectl(server, "top", "pods"))[1] == ["p0", "250m", "512Mi"]


def test_nodes_pods_and_claims_are_described(server: Server) -> None:
    described = kubectl(server, "describe", "node", "node-0")
    assert "Non-terminated Pods:          (3 in total)" in described
    assert "KubeletReady" in described
    assert "Status:       Pending" in kubectl(server, "describe", "pod", "p0")
    assert "Capacity:      20Gi" in kubectl(server, "describe", "pvc", "store", "-n", "kubeflow")
    assert "Replicas:           2 desired | 2 updated | 2 total" in kubectl(server, "describe", "deploy", "web")


def test_a_watch_is_printed(server: Server) -> None:
    printed = kubectl(server, "get", "pods", "-w", "-o", "name", "--request-timeout=1s")
    assert printed.split() == [f"pod/p{index}" for index in range(5)]


def test_nodes_are_cordoned_labelled_and_tainted(server: Server) -> None:
    assert kubectl(server, "cordon", "node-0") == "node/node-0 cordoned\n"
    kubectl(server, "uncordon", "node-0")
    kubectl(server, "label", "node", "node-0", "a=b")
    kubectl(server, "taint", "node", "node-0", "spot=true:NoSchedule")
    assert [each[4] for each in server.cluster.asked] == [
        {"spec": {"unschedulable": True}},
        {"spec": {"unschedulable": None}},
        {"metadata": {"labels": {"a": "b"}}},
        {"spec": {"taints": [{"effect": "NoSchedule", "key": "spot", "value": "true"}]}},
    ]


def test_things_are_scaled_patched_and_deleted(server: Server) -> None:
    kubectl(server, "scale", "deploy/web", "--replicas=3")
    kubectl(server, "patch", "node", "node-0", "--type=json", "-p", '[{"op":"add","path":"/spec/x","value":1}]')
    kubectl(server, "delete", "pod", "p0", "--grace-period=5", "--wait=false")
    kubectl(server, "delete", "node", "node-1")
    assert server.cluster.asked == [
        ("patch", "deployments", "default", "web", {"spec": {"replicas": 3}}),
        ("patch", "nodes", "", "node-0", {"spec": {"x": 1}}),
        ("delete", "pods", "default", "p0", 5.0),
        ("delete", "nodes", "", "node-1", None),
    ]


def test_conditions_and_deletions_are_waited_for(server: Server) -> None:
    kubectl(server, "wait", "--for=condition=Ready", "node/node-0", "--timeout=10s")
    kubectl(server, "delete", "deploy", "web", "--wait", "--timeout=10s")


def test_types_are_discovered(server: Server) -> None:
    rows = {row[-1]: row for row in _rows(kubectl(server, "api-resources"))}
    assert rows["Pod"][:3] == ["pods", "po", "v1"]
    assert rows["Workflow"][2] == "argoproj.io/v1alpha1"
    assert "+simulated" in kubectl(server, "version")
    assert kubectl(server, "get", "--raw", "/readyz") == "ok"
