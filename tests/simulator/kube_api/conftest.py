from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.kube_cluster import Cluster, Server, deployment, metadata, node, pod, serve, stamp
from tests.support.kube_pair import HISTORY, Pair, furnish
from tests.support.real_kubernetes import RealCluster


def furnished() -> Cluster:
    """Two nodes, five pods (the odd ones app=x), an event, a claim, a deployment."""
    cluster = Cluster()
    for name in ("default", "kubeflow"):
        cluster.add("namespaces", {"metadata": metadata(name), "spec": {}, "status": {"phase": "Active"}})
    for index in range(2):
        cluster.add("nodes", node(f"node-{index}", labels={"pool": "a" if index else "b"}))
    for index in range(5):
        labels = {"app": "x" if index % 2 else "y", "i": str(index)}
        cluster.add("pods", pod(f"p{index}", node=f"node-{index % 2}", labels=labels))
    cluster.add("deployments", deployment("web", 2))
    cluster.add(
        "persistentvolumeclaims",
        {
            "metadata": metadata("store", "kubeflow"),
            "spec": {
                "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "20Gi"}}, "volumeName": "pv-1",
                "storageClassName": "standard", "volumeMode": "Filesystem",
            },
            "status": {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "20Gi"}},
        },
    )  # fmt: skip
    about = {"kind": "Pod", "namespace": "default", "name": "p0", "apiVersion": "v1"}
    cluster.add(
        "events",
        {
            "metadata": metadata("p0.1", "default"),
            "involvedObject": about, "reason": "FailedScheduling", "type": "Warning", "count": 3,
            "message": "0/2 nodes are available: 2 Insufficient cpu.", "source": {"component": "default-scheduler"},
            "firstTimestamp": stamp(60), "lastTimestamp": stamp(10), "eventTime": None,
            "reportingComponent": "", "reportingInstance": "",
        },
    )  # fmt: skip
    cluster.add("workflows", {"metadata": metadata("wf-1", "kubeflow"), "spec": {}, "status": {"phase": "Running"}})
    return cluster


@pytest.fixture(scope="session")
def furnished_pair(real_cluster: RealCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    furnish(real_cluster)
    with serve(Cluster(HISTORY), tmp_path_factory.mktemp("ours")) as server:
        yield Pair(real_cluster, server)


@pytest.fixture
def pair(furnished_pair: Pair) -> Pair:
    furnished_pair.copy()
    return furnished_pair


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serve(furnished(), tmp_path) as running:
        yield running
