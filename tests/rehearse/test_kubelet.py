"""The stand-in of the kubelets: annotations say how a pod fares, and the API shows it as a kubelet reports it."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from tests.support.real_kubernetes import RealCluster, admin
from tests.support.real_parts.kube import Kube
from tests.support.real_parts.kubelet import Fate, Kubelet
from tests.support.servers import until

NAMESPACE = "kubelet"
USUAL = Fate(0.2)


@pytest.mark.parametrize(
    ("annotations", "fate"),
    [
        ({}, USUAL),
        ({"kubelet.test/runs-s": "7", "kubelet.test/pull-s": "2"}, Fate(7.0, pull_s=2.0)),
        ({"kubelet.test/exit-code": "3"}, Fate(0.2, exit_code=3, reason="Error")),
        ({"kubelet.test/reason": "OOMKilled"}, Fate(0.2, exit_code=137, reason="OOMKilled")),
        ({"kubelet.test/reason": "Evicted"}, Fate(0.2, exit_code=137, reason="Evicted")),
        ({"kubelet.test/reason": "ErrImagePull"}, Fate(0.2, reason="ErrImagePull")),
        ({"example.org/reason": "OOMKilled"}, USUAL),
    ],
)
def test_annotations_say_how_a_pod_fares(annotations: dict[str, str], fate: Fate) -> None:
    assert Fate.of({"metadata": {"annotations": annotations}}, USUAL) == fate


@pytest.fixture
def kube(real_cluster: RealCluster) -> Iterator[Kube]:
    kube, over = admin(real_cluster), threading.Event()
    kubelet = Kubelet(kube, NAMESPACE, lambda pod: Fate.of(pod, USUAL))
    with ExitStack() as stack:
        kube.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
        stack.callback(kube.delete, f"/api/v1/namespaces/{NAMESPACE}")
        real_cluster.add_node("of-kubelet")
        stack.callback(real_cluster.remove_node, "of-kubelet")
        for job in (kubelet.watch, kubelet.work):
            thread = threading.Thread(target=job, args=(over,), daemon=True)
            thread.start()
            stack.callback(thread.join)
        stack.callback(over.set)
        yield kube


# Reason of a pod → its phase, the state of its container, and the reasons of its events, as far as they show it.
ENDS: dict[str, tuple[str, dict[str, Any], set[str]]] = {
    "Completed": ("Succeeded", {"reason": "Completed", "exitCode": 0}, {"Pulled", "Created", "Started"}),
    "OOMKilled": ("Failed", {"reason": "OOMKilled", "exitCode": 137}, {"Started"}),
    "Evicted": ("Failed", {"exitCode": 137}, {"Evicted"}),
    "ErrImagePull": ("Pending", {"reason": "ImagePullBackOff"}, {"Pulling", "Failed", "BackOff"}),
    "CreateContainerConfigError": ("Pending", {"reason": "CreateContainerConfigError"}, {"Failed"}),
    "FailedCreatePodSandBox": ("Pending", {"reason": "ContainerCreating"}, {"FailedCreatePodSandBox"}),
}


def test_each_fate_is_shown_by_status_and_events(kube: Kube) -> None:
    path = f"/api/v1/namespaces/{NAMESPACE}"
    for reason in ENDS:
        metadata = {"name": reason.lower(), "annotations": {"kubelet.test/reason": reason}}
        container = {"name": "main", "image": "none"}
        spec = {"containers": [container], "restartPolicy": "Never", "nodeName": "of-kubelet"}
        kube.create(f"{path}/pods", {"metadata": metadata, "spec": spec})
    for reason, (phase, state, events) in ENDS.items():
        name = reason.lower()

        def shown(name: str = name) -> tuple[str, dict[str, Any], set[str]]:
            status = kube.get(f"{path}/pods/{name}")["status"]
            (container,) = status.get("containerStatuses") or [{"state": {"none": {}}}]
            (found,) = container["state"].values()
            chosen = kube.get(f"{path}/events?fieldSelector=involvedObject.name%3D{name}")["items"]
            return status["phase"], found, {each["reason"] for each in chosen}

        until(
            lambda shown=shown, phase=phase, state=state, events=events: (
                (seen := shown())[0] == phase and state.items() <= seen[1].items() and events <= seen[2]
            ),
            f"{name} is shown",
        )
    evicted = kube.get(f"{path}/pods/evicted")["status"]
    assert evicted["reason"] == "Evicted"
    assert "DisruptionTarget" in {each["type"] for each in evicted["conditions"]}
