"""The limits of Argo's controller, read from a real and from a simulated API server."""

import pytest

from harness.collectors.collector import ObserverSettings
from harness.collectors.journal import Journal
from harness.collectors.kubernetes.kube_api import KubeApi
from harness.collectors.kubernetes.workflow.controller_limits import (
    OF_NAMESPACE,
    ControllerArguments,
    arguments_of,
    limits_of,
    record_limits,
)
from harness.collectors.kubernetes.workflow.width import limits_of as own_limits_of
from harness.model import Event
from harness.store import RunFolder
from tests.support.manifests import at

NAME = "workflow-controller-configmap"


@pytest.mark.parametrize(
    ("data", "limits"),
    [
        ({"parallelism": "50", "namespaceParallelism": "10"}, {"parallelism": 50, "namespaceParallelism": 10}),
        ({"config": "parallelism: 50\nnamespaceParallelism: 10\n"}, {"parallelism": 50, "namespaceParallelism": 10}),
        ({"config": "parallelism: 50", "namespaceParallelism": "10"}, {"parallelism": 50, "namespaceParallelism": 10}),
        ({"parallelism": "0"}, {}),
        ({"parallelism": "many", "namespaceParallelism": "-1"}, {}),
        ({"parallelism": "9" * 5_000}, {}),
        ({"config": "[" * 10_000}, {}),
        ({"config": "- a list"}, {}),
        ({}, {}),
        (None, {}),
        ("text", {}),
    ],
)
def test_limits_are_read_in_both_forms(data, limits):
    assert limits_of({"data": data}) == limits


def container(name="workflow-controller", **more):
    return {"containers": [{"name": "istio-proxy"}, {"name": name, **more}]}


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (container(args=["--configmap", "x", "--qps", "6", "--burst=9"]), "--qps=6 --burst=9"),
        (container(args=["--qps=5", "--qps=50"]), "--qps=50"),
        (container("controller", command=["/bin/workflow-controller", "--workflow-workers", "64"]), "--workflow-workers=64"),
        (container(env=[{"name": "DEFAULT_REQUEUE_TIME", "value": "1s"}, {"name": "TOKEN", "value": "secret"}]), "DEFAULT_REQUEUE_TIME=1s"),
        (container(env=[{"name": "DEFAULT_REQUEUE_TIME", "valueFrom": {}}]), "DEFAULT_REQUEUE_TIME=?"),
        (container(envFrom=[{"configMapRef": {"name": "x"}}]), "DEFAULT_REQUEUE_TIME=?"),
        (container(args=["--qps=6; rm -rf"]), "--qps=?"),
        (container(args=["--qps"]), "--qps=?"),
        (container(), ""),
        (container("ml-pipeline", args=["--qps=6"]), None),
        ({}, None),
    ],
)  # fmt: skip
def test_the_arguments_of_the_controller_are_read_from_its_pod(spec, text):
    assert arguments_of(spec) == text


def test_another_pod_of_the_controller_with_other_arguments_is_recorded_anew(tmp_path):
    folder = RunFolder(tmp_path)
    controller = ControllerArguments(Journal(folder.recorder(), now=lambda: at(100)))
    for qps, phase, change in (
        ("5", "Succeeded", "ADDED"), ("6", "Running", "ADDED"), ("6", "Running", "MODIFIED"), ("6", "Running", "DELETED"),
        ("50", "Pending", "ADDED"),
    ):  # fmt: skip
        pod = {"metadata": {"name": "wc", "namespace": "argo"}, "status": {"phase": phase}}
        controller.see(change, {**pod, "spec": container(args=[f"--qps={qps}"])})
    found = [(each.namespace, each.object, each.message) for each in folder.records(Event)]
    assert found == [("argo", "workflow-controller", f"--qps={qps}") for qps in ("6", "50")]


def dag(*tasks):
    return {"name": "all", "dag": {"tasks": list(tasks)}}


ITEMS = {"name": "all", "steps": [[{"name": "one", "withItems": [1, 2, 3]}, {"name": "two"}], [{"name": "three"}]]}
DIAMOND = dag(
    {"name": "a"}, {"name": "b", "dependencies": ["a"]}, {"name": "c", "depends": "a.Succeeded && !b.Failed"},
    {"name": "d", "depends": "a"}, {"name": "e", "depends": "b || d"},
)  # fmt: skip


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ({"parallelism": 1, "templates": [ITEMS]}, "parallelism=1 width=4"),
        ({"templates": [{**ITEMS, "parallelism": 2}, {"name": "x"}]}, "parallelism=2 width=4"),
        ({"parallelism": 9, "templates": [DIAMOND]}, "parallelism=9 width=2"),
        ({"parallelism": 1, "templates": [dag({"name": "a", "withParam": "{{x}}"})]}, "parallelism=1 width=2"),
        ({"parallelism": 1, "templates": [dag({"name": "a", "depends": "b"}, {"name": "b", "depends": "a"})]}, "parallelism=1 width=1"),
        ({"parallelism": 1, "templates": ["odd", {"steps": "odd"}]}, "parallelism=1 width=1"),
        ({"parallelism": 0, "templates": [ITEMS]}, ""),
        ({"templates": [ITEMS]}, ""),
    ],
)  # fmt: skip
def test_a_workflow_s_own_limit_is_read_with_what_it_could_run_at_once(spec, text):
    assert own_limits_of({"spec": spec}) == text
    assert own_limits_of({"spec": {"workflowTemplateRef": {}}, "status": {"storedWorkflowTemplateSpec": spec}}) == text


class Recorded:
    """What is recorded of an API server."""

    def __init__(self, kubeconfig, path):
        self.folder = RunFolder(path)
        self.journal = Journal(self.folder.recorder(), now=lambda: at(100))
        self.api = KubeApi(ObserverSettings(host="", kubeconfig=str(kubeconfig)), self.journal)

    def of(self, platform, own):
        before = len(list(self.folder.records(Event)))
        record_limits(self.api, self.journal, platform, own)
        return [(each.namespace, each.message) for each in [*self.folder.records(Event)][before:]]


def test_the_first_namespace_with_the_config_map_counts_and_a_label_overrides_it(real_cluster, tmp_path):
    from kubernetes import client

    core = client.CoreV1Api(real_cluster.client())
    for name, labels in (("limits-argo", {}), ("limits-team", {OF_NAMESPACE: "3"}), ("limits-free", {})):
        core.create_namespace({"metadata": {"name": name, "labels": labels}})
    core.create_namespaced_config_map(
        "limits-argo", {"metadata": {"name": NAME}, "data": {"parallelism": "50", "namespaceParallelism": "10"}}
    )
    seen = Recorded(real_cluster.kubeconfig, tmp_path)
    platform = ("limits-free", "limits-argo")
    assert seen.of(platform, ("limits-free",)) == [("limits-argo", "parallelism=50 namespaceParallelism=10")]
    assert seen.of(platform, ("limits-team",)) == [("limits-argo", "parallelism=50 namespaceParallelism=3")]
    assert seen.of(platform, ("limits-team", "limits-free")) == [
        ("limits-argo", "parallelism=50 namespaceParallelism=10")
    ]
    assert seen.of(("limits-free",), ("limits-team",)) == []
    core.patch_namespaced_config_map(NAME, "limits-argo", {"data": {"parallelism": "0", "namespaceParallelism": "0"}})
    assert seen.of(platform, ("limits-free",)) == []
