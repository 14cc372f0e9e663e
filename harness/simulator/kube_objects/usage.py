"""Resource usage of pods and nodes, measured on the model and rendered as by metrics-server."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from harness.simulator.cluster import Node, Pod
from harness.simulator.engine.calendar import Calendar
from harness.simulator.hetida import Replica
from harness.simulator.hetida.service import WINDOW_S
from harness.simulator.kube_objects.components import RUNTIME
from harness.simulator.kube_objects.pod_status import WAIT
from harness.simulator.kube_objects.pods import pod_labels
from harness.simulator.kube_objects.snapshots import main_container, pod_snapshot
from harness.simulator.platform import Platform
from harness.simulator.workflows.launcher import Launch
from harness.simulator.workflows.workflow import Workflow

_MI = 2**20
_NODE_CPU, _NODE_MEMORY = 0.08, 900 * _MI  # of the node's own daemons
_WAIT_CPU, _WAIT_MEMORY = 0.005, 15 * _MI  # of the ``wait`` container


class ContainerUsage(NamedTuple):
    """A container's cores and bytes in use, and core-seconds since its start."""

    name: str
    cpu: float
    core_s: float
    memory: float


class Usage(NamedTuple):
    """Usage of a pod or node at `at` (simulated seconds)."""

    namespace: str
    name: str
    labels: Mapping[str, str]
    cpu: float
    core_s: float
    memory: float
    at: float
    containers: tuple[ContainerUsage, ...] = ()


class _Window(NamedTuple):
    """The end of a replica's last window, its core-seconds until then, and the cores that it used in it on average."""

    at: float
    core_s: float
    cores: float


class Meter:
    """Measures one platform. Core-seconds of a pod or node never decrease.

    The nodes' processors measure the main containers of workflows; everything else has constant usage outside of the
    model. `main_ended` must be called when a main container ends, and `leaves` when a pod leaves its node.

    Args:
        platform: the platform to measure.
        replicas: the pods of each deployment; for hetida designer's runtime in the order of its replicas.
    """

    def __init__(self, platform: Platform, replicas: Mapping[str, Sequence[Pod]] = MappingProxyType({})) -> None:
        self._platform = platform
        self._replicas = replicas
        # Core-seconds: by node, of pods that left (`_aside`); by pod, of its ended main container.
        self._left: defaultdict[str, float] = defaultdict(float)
        self._mains: dict[str, float] = {}
        self._windows: dict[str, _Window] = {}  # of replicas, by pod

    def pods(self, node: Node) -> Iterable[tuple[Pod, Usage]]:
        """The pods that run on a node."""
        return ((pod, self.pod(pod)) for pod in _running(node))

    def pod(self, pod: Pod) -> Usage:
        """The usage of a started pod."""
        now = self._platform.loop.now
        containers = tuple(self._containers(pod, now))
        return Usage(
            pod.namespace,
            pod.name,
            pod_labels(pod_snapshot(pod, "")),
            cpu=sum(container.cpu for container in containers),
            core_s=sum(container.core_s for container in containers) + self._mains.get(pod.name, 0.0),
            memory=sum(container.memory for container in containers),
            at=now,
            containers=containers,
        )

    def node(self, node: Node) -> Usage:
        """The usage of a ready node: its pods and daemons."""
        now = self._platform.loop.now
        aside = self._left[node.name] + sum(self._aside(pod, now) for pod in node.pods.values())
        core_s = _NODE_CPU * (now - (node.ready or 0.0)) + node.processor.work + aside
        memory = _NODE_MEMORY + sum(
            container.memory for pod in _running(node) for container in self._containers(pod, now)
        )
        return Usage("", node.name, node.labels, self.cores(node), core_s, memory, now)

    def cores(self, node: Node) -> float:
        """Cores in use on a node."""
        now = self._platform.loop.now
        return min(
            node.pool.cpu,
            _NODE_CPU + sum(container.cpu for pod in _running(node) for container in self._containers(pod, now)),
        )

    def main_ended(self, pod: Pod) -> None:
        """Record that a pod's main container has just ended."""
        self._mains[pod.name] = self._computed(pod)[1]

    def leaves(self, pod: Pod) -> None:
        """Record that a pod is about to leave its node."""
        self._mains.pop(pod.name, None)
        if pod.node is not None:
            self._left[pod.node.name] += self._aside(pod, self._platform.loop.now)

    def _containers(self, pod: Pod, now: float) -> Iterable[ContainerUsage]:
        if not isinstance(pod.owner, Workflow):
            replica = self._replica(pod)
            cpu = pod.usage_cpu if replica is None else self._recent(pod, replica.core_s, now)
            yield ContainerUsage(main_container(pod), cpu, self._aside(pod, now), pod.usage_memory)
            return
        if pod.main_ended is None and pod.deleting is None:
            yield ContainerUsage("main", *self._computed(pod), pod.usage_memory)
        yield ContainerUsage(WAIT, _WAIT_CPU, self._aside(pod, now), _WAIT_MEMORY)

    def _recent(self, pod: Pod, core_s: float, now: float) -> float:
        """Cores that a replica used on average in the last window: executions are shorter than one."""
        last = self._windows.setdefault(pod.name, _Window(pod.started or 0.0, 0.0, 0.0))
        if now - last.at >= WINDOW_S:
            last = self._windows[pod.name] = _Window(now, core_s, (core_s - last.core_s) / (now - last.at))
        return last.cores

    @staticmethod
    def _computed(pod: Pod) -> tuple[float, float]:
        """Cores and core-seconds of a workflow's main container; no cores while it reads inputs or writes outputs."""
        if pod.node is None or pod.station is not pod.node.processor or pod.job is None:
            return 0.0, pod.launch.core_s if isinstance(pod.launch, Launch) else 0.0
        return pod.usage_cpu * pod.station.speed, pod.station.work_of(pod.job)

    def _aside(self, pod: Pod, now: float) -> float:
        """Core-seconds of a pod outside of the model's processors."""
        if pod.started is None:
            return 0.0
        replica = self._replica(pod)
        if replica is not None:
            return replica.core_s
        cpu = _WAIT_CPU if isinstance(pod.owner, Workflow) else pod.usage_cpu
        return cpu * (min(now, pod.finished if pod.finished is not None else now) - pod.started)

    def _replica(self, pod: Pod) -> Replica | None:
        service = self._platform.hetida
        its = zip(self._replicas.get(RUNTIME, ()), service.replicas if service else (), strict=False)
        return next((replica for mine, replica in its if mine is pod), None)


def _running(node: Node) -> Iterable[Pod]:
    return (pod for pod in node.pods.values() if pod.started is not None and not pod.over)


def _metadata(usage: Usage, calendar: Calendar) -> dict[str, Any]:
    namespace = {"namespace": usage.namespace} if usage.namespace else {}
    named = {"name": usage.name, **namespace, "creationTimestamp": calendar.stamp(usage.at)}
    return {**named, "labels": dict(usage.labels)}


def _amounts(usage: Usage | ContainerUsage) -> dict[str, str]:
    return {"cpu": f"{round(usage.cpu * 1e9)}n", "memory": f"{round(usage.memory / 1024)}Ki"}


def _measured(usage: Usage, calendar: Calendar) -> dict[str, Any]:
    return {"metadata": _metadata(usage, calendar), "timestamp": calendar.stamp(usage.at), "window": "10s"}


def render_node(usage: Usage, calendar: Calendar) -> dict[str, Any]:
    """The NodeMetrics manifest of a node's usage."""
    return _measured(usage, calendar) | {"usage": _amounts(usage)}


def render_pod(usage: Usage, calendar: Calendar) -> dict[str, Any]:
    """The PodMetrics manifest of a pod's usage."""
    containers = [{"name": container.name, "usage": _amounts(container)} for container in usage.containers]
    return _measured(usage, calendar) | {"containers": containers}
