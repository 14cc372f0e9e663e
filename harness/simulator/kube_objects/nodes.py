"""Manifests of nodes and node pools."""

from collections.abc import Mapping

from harness.simulator.cluster.shapes import cores, quantity
from harness.simulator.kfp.view import Stamp
from harness.simulator.kube_api import Manifest
from harness.simulator.kube_objects.snapshots import NodeSnapshot, address, metadata, uid

POOLS, CLUSTER = "kube-system", "simulated"  # the namespace of the node pools, and the cluster that they belong to
_UNREADY_TAINT = {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}
_SILENT = {"status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting node status."}
_OF_READY = frozenset({"NodeStatusUnknown", "KubeletNotReady", "ContainerRuntimeUnhealthy"})
_PROBLEMS = (
    ("MemoryPressure", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
)


def node_labels(node: NodeSnapshot) -> Mapping[str, str]:
    """The node's labels, for label selectors."""
    return dict(node.labels)


def node_fields(node: NodeSnapshot) -> Mapping[str, str]:
    """The values of the fields that can be selected."""
    return {"metadata.name": node.name, "spec.unschedulable": "true" if node.cordoned else "false"}


def render_node(node: NodeSnapshot, stamp: Stamp) -> Manifest:
    """The manifest of a node."""
    taints = [{"key": t.key, **({"value": t.value} if t.value else {}), "effect": t.effect} for t in node.taints]
    if node.ready is None:
        taints.append(_UNREADY_TAINT)
    if node.cordoned:
        taints.append({"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"})
    spec: Manifest = {"providerID": f"azure:///subscriptions/simulated/virtualMachines/{node.name}"}
    if taints:
        spec["taints"] = taints
    if node.cordoned:
        spec["unschedulable"] = True
    return {
        "metadata": metadata(
            "node",
            node.name,
            stamp(node.created),
            labels=dict(node.labels),
            annotations={"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
        ),
        "spec": spec,
        "status": _status(node, stamp),
    }


def render_pool(name: str, nodes: int, ready: int, stamp: Stamp) -> Manifest:
    """A pool of so many nodes as Cluster API's MachineDeployment, which can be scaled."""
    labels = {"cluster.x-k8s.io/cluster-name": CLUSTER, "cluster.x-k8s.io/deployment-name": name}
    unready = {"unavailableReplicas": nodes - ready} if nodes > ready else {}
    return {
        "metadata": metadata("pool", name, stamp(0.0), POOLS, labels=labels),
        "spec": {
            "clusterName": CLUSTER,
            "replicas": nodes,
            "selector": {"matchLabels": labels},
            "template": {"spec": {"clusterName": CLUSTER}},
        },
        "status": {
            "replicas": nodes,
            "readyReplicas": ready,
            "availableReplicas": ready,
            "updatedReplicas": nodes,
            "phase": "ScalingUp" if unready else "Running",
            **unready,
        },
    }


def _status(node: NodeSnapshot, stamp: Stamp) -> Manifest:
    pool = node.pool
    capacity = _resources(round(pool.cpu * 1000), int(pool.memory), node.allocatable[2], pool.pods)
    return {
        "capacity": capacity,
        "allocatable": _resources(*node.allocatable, pool.pods),
        "conditions": _conditions(node, stamp),
        "addresses": [
            {"type": "InternalIP", "address": address(node.number)},
            {"type": "Hostname", "address": node.name},
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": {
            "architecture": "amd64",
            "operatingSystem": "linux",
            "osImage": "Ubuntu 22.04.5 LTS",
            "kernelVersion": "5.15.0-1079-azure",
            "containerRuntimeVersion": "containerd://1.7.26-1",
            "kubeletVersion": "v1.32.4",
            "kubeProxyVersion": "v1.32.4",
            "machineID": uid("machine", node.name).replace("-", ""),
            "systemUUID": uid("system", node.name),
            "bootID": uid("boot", node.name),
        },
        "images": [{"names": [image]} for image in node.images],
    }


def _resources(cpu: int, memory: int, gpu: int, pods: int) -> Manifest:
    amounts = {"cpu": cores(cpu), "memory": quantity(memory), "pods": str(pods), "ephemeral-storage": "128Gi"}
    return amounts | ({"nvidia.com/gpu": str(gpu)} if gpu else {})


def _told(reason: str) -> tuple[str, str]:
    """Type and status of the condition in which a reason stands."""
    kinds = {"Memory": "MemoryPressure", "Disk": "DiskPressure", "PID": "PIDPressure", "Route": "NetworkUnavailable"}
    kind = next((kind for word, kind in kinds.items() if word in reason), "")
    if kind:
        return kind, "True"
    return (
        ("Ready", "Unknown" if reason == "NodeStatusUnknown" else "False") if reason in _OF_READY else (reason, "True")
    )


def _conditions(node: NodeSnapshot, stamp: Stamp) -> list[Manifest]:
    heard = stamp(node.heard)
    if node.unreachable is not None:
        silent = {**_SILENT, "lastHeartbeatTime": heard, "lastTransitionTime": stamp(node.unreachable)}
        return [{"type": kind, **silent} for kind in (*(problem[0] for problem in _PROBLEMS), "Ready")]
    since = stamp(node.created)
    conditions = [
        {"type": kind, "status": "False", "reason": reason, "message": message} for kind, reason, message in _PROBLEMS
    ]
    if node.ready is None:
        message = "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady"
        ready = {"type": "Ready", "status": "False", "reason": "KubeletNotReady", "message": message}
    else:
        ready = {
            "type": "Ready",
            "status": "True",
            "reason": "KubeletReady",
            "message": "kubelet is posting ready status",
        }
    if node.words is not None:
        kind, status = _told(node.words.reason)
        stated = {"type": kind, "status": status, "reason": node.words.reason, "message": node.words.message}
        conditions = [condition for condition in conditions if condition["type"] != kind] + (
            [stated] if kind != "Ready" else []
        )
        ready = stated if kind == "Ready" else ready
    stamped = [{**condition, "lastHeartbeatTime": heard, "lastTransitionTime": since} for condition in conditions]
    changed = since if node.ready is None else stamp(node.ready)
    return [*stamped, {**ready, "lastHeartbeatTime": heard, "lastTransitionTime": changed}]
