"""The limits of Argo's controller, read from a real and from a simulated API server."""

import pytest

from harness.collectors.collector import ObserverSettings
from harness.collectors.journal import Journal
from harness.collectors.kubernetes.controller_limits import OF_NAMESPACE, limits_of, record_limits
from harness.collectors.kubernetes.kube_api import KubeApi
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


class Recorded:
    """What is recorded of an API server."""

    def __init__(self, kubeconfig, path):
        self.folder = RunFolder(path)
        self.journal = Journal(self.folder.recorder(), now=lambda: at(100))
        self.api = KubeApi(ObserverSettings("", kubeconfig=str(kubeconfig)), self.journal)

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
