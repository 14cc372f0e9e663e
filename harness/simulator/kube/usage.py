"""What pods and nodes use, as metrics-server and the kubelets report it."""

from typing import Any, NamedTuple

from harness.simulator.cluster import Node, Pod
from harness.simulator.kfp.view import Calendar

_NODE_CPU, _NODE_MEMORY = 0.08, 900 * 2**20  # of the node's own daemons


class Usage(NamedTuple):
    """Cores and bytes in use at `at` (simulated seconds)."""

    namespace: str
    name: str
    cpu: float
    memory: float
    at: float


def of_pod(pod: Pod, now: float) -> Usage:
    """What a pod uses: its share of the processor while it computes, next to nothing while it waits."""
    cpu = 0.0
    if pod.started is not None and not pod.over:
        computes = pod.node is not None and pod.station is pod.node.processor and pod.job is not None
        idle = pod.owner is not None and pod.on_running is None
        if computes and pod.station is not None:
            cpu = pod.usage_cpu * pod.station.speed
        elif idle:
            cpu = pod.usage_cpu
        else:
            cpu = 0.005
    return Usage(pod.namespace, pod.name, cpu, pod.usage_memory if cpu else 0.0, now)


def of_node(node: Node, now: float) -> Usage:
    """What a node uses: its pods and its daemons."""
    pods = [of_pod(pod, now) for pod in node.pods.values()]
    cpu = min(node.pool.cpu, _NODE_CPU + sum(each.cpu for each in pods))
    return Usage("", node.name, cpu, _NODE_MEMORY + sum(each.memory for each in pods), now)


def _metadata(usage: Usage, calendar: Calendar) -> dict[str, Any]:
    namespace = {"namespace": usage.namespace} if usage.namespace else {}
    return {"name": usage.name, **namespace, "creationTimestamp": calendar.stamp(usage.at)}


def _amounts(usage: Usage) -> dict[str, str]:
    return {"cpu": f"{round(usage.cpu * 1e9)}n", "memory": f"{round(usage.memory / 1024)}Ki"}


def render_node(usage: Usage, calendar: Calendar) -> dict[str, Any]:
    """NodeMetrics."""
    stamp = calendar.stamp(usage.at)
    return {"metadata": _metadata(usage, calendar), "timestamp": stamp, "window": "10s", "usage": _amounts(usage)}


def render_pod(usage: Usage, calendar: Calendar) -> dict[str, Any]:
    """PodMetrics."""
    stamp = calendar.stamp(usage.at)
    containers = [{"name": "main", "usage": _amounts(usage)}]
    return {"metadata": _metadata(usage, calendar), "timestamp": stamp, "window": "10s", "containers": containers}
