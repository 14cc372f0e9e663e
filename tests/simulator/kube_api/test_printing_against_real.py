"""What `kubectl get` prints: the tables of the real server, of objects in every state."""

from typing import Any

import pytest

from tests.support.kube_pair import COPIED, MERGE_PATCH, TABLE, Pair, assert_same


@pytest.mark.parametrize("plural", [*COPIED])
@pytest.mark.parametrize("include", ["", "None", "Object", "Foo"])
def test_tables(pair: Pair, plural: str, include: str) -> None:
    path = COPIED[plural]
    pair.compare("GET", f"{path}{'&' if '?' in path else '?'}includeObject={include}", accept=TABLE)


STAMP = "2026-01-01T00:00:00Z"
RUNNING = {"running": {"startedAt": STAMP}}
DONE = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": STAMP, "finishedAt": STAMP}}


def _ended(**more: object) -> dict[str, object]:
    return {"terminated": {"startedAt": STAMP, "finishedAt": STAMP, **more}}


def _waits(reason: str) -> dict[str, object]:
    return {"waiting": {"reason": reason}}


def _container(state: dict[str, object], *, name: str = "main", **more: object) -> dict[str, object]:
    ready = "running" in state
    return {"name": name, "image": "none", "imageID": "", "ready": ready, "restartCount": 0, "state": state, **more}


def _is_ready(status: str) -> list[dict[str, str]]:
    return [{"type": "Ready", "status": status, "lastTransitionTime": STAMP}]


# Pod statuses as kubelets report them; what `kubectl get pods` makes of each is for the real server to say.
POD_STATES: dict[str, dict[str, object]] = {
    "starts": {"containerStatuses": [_container(_waits("ContainerCreating"))]},
    "no-image": {"containerStatuses": [_container(_waits("ImagePullBackOff"))]},
    "no-reason": {"containerStatuses": [_container({"waiting": {}})]},
    "killed": {"phase": "Failed", "containerStatuses": [_container(_ended(exitCode=137, signal=9))]},
    "exits": {"phase": "Failed", "containerStatuses": [_container(_ended(exitCode=3))]},
    "evicted": {"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."},
    "half-done": {
        "phase": "Running",
        "conditions": _is_ready("False"),
        "containerStatuses": [_container(DONE), _container(RUNNING, name="side")],
    },
    "half-ready": {
        "phase": "Running",
        "conditions": _is_ready("True"),
        "containerStatuses": [_container(DONE), _container(RUNNING, name="side")],
    },
    "unready": {"phase": "Running", "containerStatuses": [_container(RUNNING, ready=False)]},
    "initializes": {"initContainerStatuses": [_container(RUNNING, name="init", ready=False)]},
    "cannot-initialize": {"initContainerStatuses": [_container(_ended(exitCode=1, reason="Error"), name="init")]},
    "init-exits": {"initContainerStatuses": [_container(_ended(exitCode=2), name="init")]},
    "init-waits": {"initContainerStatuses": [_container(_waits("PodInitializing"), name="init")]},
    "init-has-no-image": {"initContainerStatuses": [_container(_waits("ErrImagePull"), name="init")]},
    "initialized": {
        "initContainerStatuses": [_container(DONE, name="init", ready=True)],
        "containerStatuses": [_container(_waits("PodInitializing"))],
    },
    "nominated": {"nominatedNodeName": "differ-0"},
    "gated": {"conditions": [{"type": "gate", "status": "True"}]},
}


def _pod_in_state(name: str, status: dict[str, Any]) -> dict[str, object]:
    names = [each["name"] for each in status.get("containerStatuses", [])] or ["main"]
    spec: dict[str, object] = {"containers": [{"name": each, "image": "none"} for each in names]}
    if "initContainerStatuses" in status:
        spec["initContainers"] = [{"name": each, "image": "none"} for each in ("init", "init-2")]
    if name == "gated":
        spec["readinessGates"] = [{"conditionType": each} for each in ("gate", "other")]
    # Placed, or for another scheduler, so that none says anything.
    place = {"schedulerName": "none"} if "nominatedNodeName" in status else {"nodeName": "differ-0"}
    return {"metadata": {"name": name}, "spec": {**spec, **place}}


def test_the_row_of_a_pod_in_each_state(pair: Pair) -> None:
    namespace = "states"
    pods = f"/api/v1/namespaces/{namespace}/pods"
    pair.real.ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    for name, status in POD_STATES.items():
        made, _, body = pair.real.ask("POST", pods, _pod_in_state(name, status))
        assert made == 201, body
        known, _, body = pair.real.ask("PATCH", f"{pods}/{name}/status", {"status": status}, MERGE_PATCH)
        assert known == 200, body["message"]
    pair.real.ask("DELETE", f"{pods}/unready", {"gracePeriodSeconds": 600})
    items = pair.real.get(pods)["items"]
    assert len(items) == len(POD_STATES)
    pair.server.do(lambda cluster: [cluster.add("pods", each) for each in items])
    pair.compare("GET", pods, accept=TABLE)


def test_the_row_of_a_node_in_each_state(pair: Pair) -> None:
    states = {
        "control": ({"node-role.kubernetes.io/master": "", "kubernetes.io/role": "boss"}, "True", False),
        "cordoned": ({}, "True", True),
        "broken": ({}, "False", False),
        "lost": ({}, "Unknown", True),
        "new": ({}, None, False),
    }
    for name, (labels, ready, unschedulable) in states.items():
        named = {"name": f"state-{name}", "labels": {**labels, "pool": "states"}}
        node = {"metadata": named, "spec": {"unschedulable": True} if unschedulable else {}}
        made, _, body = pair.real.ask("POST", "/api/v1/nodes", node)
        assert made == 201, body
        if ready:
            machine = {"osImage": "Ubuntu", "kernelVersion": "5", "containerRuntimeVersion": "containerd://1"}
            condition = {"type": "Ready", "status": ready, "reason": "Test", "message": "", "lastTransitionTime": STAMP}
            addresses = [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "ExternalIP", "address": "20.0.0.1"}]
            status = {
                "conditions": [{**condition, "lastHeartbeatTime": STAMP}],
                "addresses": addresses,
                "nodeInfo": {**machine, "kubeletVersion": "v1"},
            }
            pair.real.ask("PATCH", f"/api/v1/nodes/state-{name}/status", {"status": status}, MERGE_PATCH)
    path = "/api/v1/nodes?labelSelector=pool%3Dstates"
    items = pair.real.get(path)["items"]
    for item in items:
        item["metadata"].pop("managedFields")
    pair.server.do(lambda cluster: [cluster.add("nodes", each) for each in items])
    pair.compare("GET", f"{path}&includeObject=None", accept=TABLE)
    for name in states:
        pair.real.ask("DELETE", f"/api/v1/nodes/state-{name}")


def test_the_rows_of_quotas_and_priority_classes(pair: Pair) -> None:
    namespace = "quotas"
    path = f"/api/v1/namespaces/{namespace}/resourcequotas"
    pair.real.ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    hard = {"requests.cpu": "4", "limits.cpu": "8", "pods": "10", "requests.memory": "1500Mi"}
    made, _, body = pair.real.ask("POST", path, {"metadata": {"name": "workflows"}, "spec": {"hard": hard}})
    assert made == 201, body
    used = {"requests.cpu": "500m", "limits.cpu": "1", "pods": "2", "requests.memory": "1Gi"}
    pair.real.ask("PATCH", f"{path}/workflows/status", {"status": {"hard": hard, "used": used}}, MERGE_PATCH)
    # The quota controller may count anew at any time: what both print is compared at one version of the object.
    for _ in range(20):
        items = pair.real.get(path)["items"]
        pair.server.do(lambda cluster, items=items: [cluster.add("resourcequotas", each) for each in items])
        printed = [side.ask("GET", path, accept=TABLE) for side in (pair.ours, pair.real)]
        if pair.real.get(path)["items"] == items:
            break
    assert_same(*printed)
    classes = "/apis/scheduling.k8s.io/v1/priorityclasses"
    listed = pair.real.get(classes)["items"]
    pair.server.do(lambda cluster: [cluster.add("priorityclasses", each) for each in listed])
    pair.compare("GET", classes)
    pair.compare("GET", classes, accept=TABLE)


def test_the_rows_of_config_maps_and_storage_classes(pair: Pair) -> None:
    namespace = "settings"
    maps, classes = f"/api/v1/namespaces/{namespace}/configmaps", "/apis/storage.k8s.io/v1/storageclasses"
    pair.real.ask("POST", "/api/v1/namespaces", {"metadata": {"name": namespace}})
    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    made = [
        pair.real.ask("POST", maps, {"metadata": {"name": "empty"}}),
        pair.real.ask(
            "POST", maps, {"metadata": {"name": "full"}, "data": {"a": "1", "b": "2"}, "binaryData": {"c": "AA=="}}
        ),
        pair.real.ask("POST", classes, {"metadata": {"name": "settings-plain"}, "provisioner": "none"}),
        pair.real.ask(
            "POST",
            classes,
            {
                "metadata": {"name": "settings-default", "annotations": default},
                "provisioner": "none",
                "allowVolumeExpansion": True,
                "volumeBindingMode": "WaitForFirstConsumer",
                "reclaimPolicy": "Retain",
            },
        ),
    ]
    assert {status for status, _, _ in made} == {201}, made
    try:
        for plural, path in (("configmaps", maps), ("storageclasses", classes)):
            items = pair.real.get(path)["items"]
            pair.server.do(lambda cluster, plural=plural, items=items: [cluster.add(plural, each) for each in items])
            pair.compare("GET", path, accept=TABLE)
    finally:
        for name in ("settings-plain", "settings-default"):
            pair.real.ask("DELETE", f"{classes}/{name}")
