"""The catalogue of stated reasons knows what a real Kubernetes says: its API server, scheduler and controllers."""

import json
import re
import socket
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import pytest

from harness import reasons
from tests.support.real_kubernetes import RealCluster
from tests.support.servers import until

Manifest = Mapping[str, Any]
T = TypeVar("T")
_IMAGE = "registry.example/none:1"
_NODES = ("plain", "tainted", "cordoned", "crowded", "small")
_NEW = 25  # minor version of Kubernetes from which on Pod Security is checked


def stated(source: str, text: str, reason: str = "") -> str:
    """The name of the row that a text matches; "" without one."""
    row = reasons.builtin().match(reasons.stated(source, reason, text)).row
    return row.name if row else ""


def _pod(name: str, spec: Manifest | None = None, **container: Any) -> dict[str, Any]:
    whole = {"name": "main", "image": _IMAGE, **container}
    return {"metadata": {"name": name}, "spec": {"containers": [whole], "restartPolicy": "Never", **(spec or {})}}


def _resources(**of: Mapping[str, str]) -> dict[str, Any]:
    return {"resources": of}


def _mounting(claim: str) -> dict[str, Any]:
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]}


def _affinity(kind: str, label: str) -> dict[str, Any]:
    term = {"labelSelector": {"matchLabels": {"is": label}}, "topologyKey": "kubernetes.io/hostname"}
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


# What is refused: the limits of the namespace, the pod, and the row.
_REFUSED: dict[str, tuple[Manifest, Manifest]] = {
    "quota": ({"quota": {"pods": "0"}}, _pod("x")),
    "quota-without-requests": ({"quota": {"limits.cpu": "4"}}, _pod("x")),
    "limit-range-exceeded": (
        {"limits": {"max": {"memory": "1Gi"}}}, _pod("x", **_resources(limits={"memory": "2Gi"})),
    ),
    "limit-range-below": (
        {"limits": {"min": {"cpu": "1"}}},
        _pod("x", **_resources(requests={"cpu": "10m"}, limits={"cpu": "2"})),
    ),
    "limit-range-ratio": (
        {"limits": {"maxLimitRequestRatio": {"cpu": "2"}}},
        _pod("x", **_resources(requests={"cpu": "1"}, limits={"cpu": "8"})),
    ),
    "pod-security": ({"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}, _pod("x")),
    "priority-class-missing": ({}, _pod("x", {"priorityClassName": "nosuch"})),
    "runtime-class-missing": ({}, _pod("x", {"runtimeClassName": "nosuch"})),
    "request-above-limit": ({}, _pod("x", **_resources(requests={"cpu": "8"}, limits={"cpu": "4"}))),
    "name-too-long": ({}, {**_pod("x"), "metadata": {"name": "x", "labels": {"step": "a" * 64}}}),
    "pod-invalid": ({}, _pod("x", volumeMounts=[{"name": "nosuch", "mountPath": "/data"}])),
    "webhook-unreachable": ({"webhook": {"service": {"namespace": "nosuch", "name": "nosuch"}}}, _pod("x")),
    "webhook-timeout": ({"webhook": {"url": "https://127.0.0.1:{port}"}}, _pod("x")),
    "permission-missing": ({"user": "someone"}, _pod("x")),
    "namespace-missing": ({"namespace": "nosuch"}, _pod("x")),
}  # fmt: skip

# What is not placed: the node that it selects (None: it selects a label that no node has), the pod, and the rows.
_UNPLACED: dict[str, tuple[str | None, Manifest, set[str]]] = {
    "taint": ("tainted", _pod("taint"), {"untolerated-taint", "untolerated-taints"}),
    "cordon": ("cordoned", _pod("cordon"), {"nodes-cordoned"}),
    "selector": (None, _pod("selector"), {"node-affinity-unmatched"}),
    "cpu": ("plain", _pod("cpu", **_resources(requests={"cpu": "64"})), {"insufficient-cpu"}),
    "memory": ("plain", _pod("memory", **_resources(requests={"memory": "1Ti"})), {"insufficient-memory"}),
    "disk": (
        "plain", _pod("disk", **_resources(requests={"ephemeral-storage": "1Ti"})), {"insufficient-ephemeral-storage"},
    ),
    "gpu": ("plain", _pod("gpu", **_resources(limits={"nvidia.com/gpu": "1"})), {"insufficient-gpu"}),
    "dongle": (
        "plain", _pod("dongle", **_resources(limits={"example.com/dongle": "1"})), {"insufficient-extended-resource"},
    ),
    "pods": ("crowded", _pod("pods"), {"insufficient-pods"}),
    "affinity": ("plain", _pod("affinity", _affinity("podAffinity", "nosuch")), {"pod-affinity-unmatched"}),
    "anti": ("plain", _pod("anti", _affinity("podAntiAffinity", "holder")), {"pod-anti-affinity"}),
    "port": ("plain", _pod("port", ports=[{"containerPort": 80, "hostPort": 8080}]), {"host-ports-taken"}),
    "spread": (
        "plain",
        _pod("spread", {"topologySpreadConstraints": [{
            "maxSkew": 1, "topologyKey": "nosuch", "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {},
        }]}),
        {"topology-spread-label-missing"},
    ),
    "no-claim": ("plain", _pod("no-claim", _mounting("nosuch")), {"claim-missing"}),
    "unbound": ("plain", _pod("unbound", _mounting("unbound")), {"claim-unbound"}),
    "no-volume": ("plain", _pod("no-volume", _mounting("waiting")), {"no-volume-to-bind"}),
    "elsewhere": ("plain", _pod("elsewhere", _mounting("elsewhere")), {"volume-in-another-zone"}),
}  # fmt: skip

# What controllers say of claims, and the scheduler of a pod that has to go.
_EVENTS = {
    "victim": {"preempted"},
    "classless": {"claim-without-class"},
    "unknown": {"storage-class-missing"},
    "unbound": {"volume-provisioning-pending"},
    "waiting": {"claim-waits-for-pod"},
}


@pytest.mark.parametrize("row", _REFUSED)
def test_a_refusal_of_the_api_server_is_known(row: str, real_cluster: RealCluster) -> None:
    if row == "pod-security" and real_cluster.version < (1, _NEW):
        pytest.skip("this API server checks no Pod Security")
    limits, pod = _REFUSED[row]
    assert stated("admission", _refusal(real_cluster, f"reasons-{row}"[:40], limits, pod)) == row


def _refusal(cluster: RealCluster, namespace: str, limits: Manifest, pod: Manifest) -> str:
    from kubernetes import client

    core, hooks = client.CoreV1Api(cluster.client()), client.AdmissionregistrationV1Api(cluster.client())
    creating = cluster.client()
    if "user" in limits:
        creating.set_default_header("Impersonate-User", limits["user"])
    create = partial(client.CoreV1Api(creating).create_namespaced_pod, limits.get("namespace", namespace), pod)
    core.create_namespace({"metadata": {"name": namespace, "labels": {"is": namespace, **limits.get("labels", {})}}})
    if "quota" in limits:
        core.create_namespaced_resource_quota(namespace, {"metadata": {"name": "q"}, "spec": {"hard": limits["quota"]}})
        until(lambda: core.read_namespaced_resource_quota("q", namespace).status.hard, "the quota's first count")
    if "limits" in limits:
        item = {"type": "Container", **limits["limits"]}
        core.create_namespaced_limit_range(namespace, {"metadata": {"name": "l"}, "spec": {"limits": [item]}})
    with socket.create_server(("127.0.0.1", 0)) as mute:  # takes connections and never answers
        if "webhook" in limits:
            called = {key: _at(value, mute.getsockname()[1]) for key, value in limits["webhook"].items()}
            hooks.create_validating_webhook_configuration(_webhook(namespace, called))
        try:
            return str(json.loads(_said(lambda: _error_of(partial(create, dry_run="All")), "a refusal"))["message"])
        finally:
            if "webhook" in limits:
                hooks.delete_validating_webhook_configuration(namespace)
            core.delete_namespace(namespace)


def _at(place: Any, port: int) -> Any:
    return place.format(port=port) if isinstance(place, str) else place


def _webhook(namespace: str, called: Manifest) -> dict[str, Any]:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": ["pods"], "operations": ["CREATE"], "scope": "*"}
    return {
        "metadata": {"name": namespace},
        "webhooks": [{
            "name": "pods.example.com", "rules": [rule], "clientConfig": called, "timeoutSeconds": 1,
            "namespaceSelector": {"matchLabels": {"is": namespace}}, "sideEffects": "None",
            "admissionReviewVersions": ["v1"], "failurePolicy": "Fail",
        }],
    }  # fmt: skip


def _error_of(call: Callable[[], object]) -> str:
    from kubernetes import client

    try:
        call()
    except client.ApiException as error:
        return str(error.body)
    return ""  # a controller has not seen the limits yet


def test_what_scheduler_and_controllers_say_is_known(real_cluster: RealCluster) -> None:
    from kubernetes import client

    if not (real_cluster.schedules and real_cluster.controls):
        pytest.skip("the folder named by KUBEBUILDER_ASSETS holds no kube-scheduler or no kube-controller-manager")
    core, namespace = client.CoreV1Api(real_cluster.client()), "reasons"
    core.create_namespace({"metadata": {"name": namespace}})
    _add_nodes(real_cluster, core)
    _add_claims(real_cluster, core, namespace)
    holder = _pod("holder", ports=[{"containerPort": 80, "hostPort": 8080}])
    holder["metadata"]["labels"] = {"is": "holder"}
    core.create_namespaced_pod(namespace, _selecting(holder, "plain"))
    until(lambda: core.read_namespaced_pod("holder", namespace).spec.node_name, "a pod on its node")
    _preempt(real_cluster, core, namespace)
    for node, pod, _ in _UNPLACED.values():
        core.create_namespaced_pod(namespace, _selecting(pod, node or "nosuch"))
    try:
        unknown: dict[str, str] = {}
        for name, (_, _, rows) in _UNPLACED.items():
            message = _said(partial(_unschedulable, core, namespace, name), f"a word on the pod {name}")
            if not rows & {stated("scheduler", each) for each in _predicates(message)}:
                unknown[name] = message
        for name, rows in _EVENTS.items():
            events = _said(partial(_events, core, namespace, name), f"an event of {name}")
            if not rows & {stated("event", message, reason) for reason, message in events}:
                unknown[name] = str(events)
        assert unknown == {}
    finally:
        core.delete_namespace(namespace)
        for node in _NODES:
            real_cluster.remove_node(f"reasons-{node}")


def _said(find: Callable[[], T], what: str) -> T:
    """What is found as soon as there is anything."""
    found: list[T] = []

    def there() -> bool:
        found[:] = [find()]
        return bool(found[0])

    until(there, what)
    return found[0]


def _add_nodes(cluster: RealCluster, core: Any) -> None:
    taint = {"key": "sku", "value": "training", "effect": "NoSchedule"}
    for node in _NODES:
        cluster.add_node(
            f"reasons-{node}", labels={"reasons": node}, pods=0 if node == "crowded" else 110,
            taints=[taint] if node == "tainted" else None,
        )  # fmt: skip
    core.patch_node("reasons-cordoned", {"spec": {"unschedulable": True}})


def _add_claims(cluster: RealCluster, core: Any, namespace: str) -> None:
    from kubernetes import client

    storage = client.StorageV1Api(cluster.client())
    for name, mode in (("reasons-now", "Immediate"), ("reasons-later", "WaitForFirstConsumer")):
        provisioner = "kubernetes.io/no-provisioner" if name == "reasons-later" else "nosuch.example.com"
        storage.create_storage_class(
            {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode}
        )
    of = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    terms = [{"matchExpressions": [{"key": "reasons", "operator": "In", "values": ["nosuch"]}]}]
    core.create_persistent_volume({
        "metadata": {"name": "reasons-elsewhere"},
        "spec": {
            "accessModes": of["accessModes"], "capacity": {"storage": "1Gi"}, "storageClassName": "reasons-static",
            "persistentVolumeReclaimPolicy": "Delete", "local": {"path": "/nosuch"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
        },
    })  # fmt: skip
    for claim, kind in {
        "unbound": "reasons-now", "waiting": "reasons-later", "elsewhere": "reasons-static", "classless": "",
        "unknown": "nosuch",
    }.items():  # fmt: skip
        core.create_namespaced_persistent_volume_claim(
            namespace, {"metadata": {"name": claim}, "spec": {**of, "storageClassName": kind}}
        )
    until(
        lambda: core.read_namespaced_persistent_volume_claim("elsewhere", namespace).status.phase == "Bound",
        "a bound claim",
    )


def _selecting(pod: Manifest, node: str) -> dict[str, Any]:
    return {**pod, "spec": {**pod["spec"], "nodeSelector": {"reasons": node}}}


def _unschedulable(core: Any, namespace: str, name: str) -> str:
    conditions = core.read_namespaced_pod(name, namespace).status.conditions or ()
    return next((each.message for each in conditions if each.reason == "Unschedulable"), "")


def _predicates(said: str) -> list[str]:
    body = said.partition(" preemption:")[0].partition("are available: ")[2]
    return [re.sub(r"^\d+ ", "", each).rstrip(".") for each in re.split(r", (?=\d+ )", body)]


def _preempt(cluster: RealCluster, core: Any, namespace: str) -> None:
    """Let a pod of higher priority take the place of another."""
    from kubernetes import client

    urgent = {"metadata": {"name": "reasons-urgent"}, "value": 1000}
    client.SchedulingV1Api(cluster.client()).create_priority_class(urgent)
    most = _resources(requests={"cpu": "3"})
    core.create_namespaced_pod(namespace, _selecting(_pod("victim", **most), "small"))
    until(lambda: core.read_namespaced_pod("victim", namespace).spec.node_name, "a pod on its node")
    core.create_namespaced_pod(
        namespace, _selecting(_pod("urgent", {"priorityClassName": "reasons-urgent"}, **most), "small")
    )


def _events(core: Any, namespace: str, name: str) -> list[tuple[str, str]]:
    """Reasons and messages of an object's events, without that of its place."""
    found = core.list_namespaced_event(namespace, field_selector=f"involvedObject.name={name}").items
    return [(each.reason, each.message) for each in found if each.reason != "Scheduled"]
