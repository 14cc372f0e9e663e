"""The control plane that tests are judged by must itself behave as one."""

import pytest
from kubernetes import client

from tests.support.real_kubernetes import RealCluster


def _pod(name: str, cpu: str) -> dict[str, object]:
    """A pod for the test's own node: other tests may have nodes of theirs in the cluster."""
    container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu}}}
    place = {"kubernetes.io/hostname": "small"}
    spec = {"containers": [container], "restartPolicy": "Never", "nodeSelector": place}
    return {"metadata": {"name": name}, "spec": spec}


def _phase(core: client.CoreV1Api, name: str) -> str:
    return str(core.read_namespaced_pod(name, "scheduled").status.phase)


def test_the_scheduler_places_what_fits_and_says_what_does_not(real_cluster: RealCluster) -> None:
    if not real_cluster.schedules:
        pytest.skip("the folder named by KUBEBUILDER_ASSETS holds no kube-scheduler")
    from kubernetes import watch

    core = client.CoreV1Api(real_cluster.client())
    core.create_namespace({"metadata": {"name": "scheduled"}})
    real_cluster.add_node("small", cpu="1")
    core.create_namespaced_pod("scheduled", _pod("fits", "700m"))
    for event in watch.Watch().stream(core.list_namespaced_pod, "scheduled", timeout_seconds=60):
        if event["object"].spec.node_name:
            break
    core.create_namespaced_pod("scheduled", _pod("waits", "700m"))
    said = ""
    for event in watch.Watch().stream(core.list_namespaced_event, "scheduled", timeout_seconds=60):
        if event["object"].reason == "FailedScheduling":
            said = event["object"].message
            break
    assert "1 Insufficient cpu" in said
    real_cluster.run_pod("scheduled", "fits")
    assert _phase(core, "fits") == "Running"
    real_cluster.finish_pod("scheduled", "fits")
    assert _phase(core, "fits") == "Succeeded"
    assert _phase(core, "waits") == "Pending"
    real_cluster.remove_node("small")
