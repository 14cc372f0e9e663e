"""The Kubernetes API's proxies: kubelets' statistics and components' metrics."""

import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, NamedTuple
from urllib.parse import unquote

from aiohttp import web

from harness.model.live.exposition import Family, Series, written
from harness.simulator.cluster import Node, Pod
from harness.simulator.kfp.rest import Gateway
from harness.simulator.kube_api import ApiError
from harness.simulator.kube_objects import metrics
from harness.simulator.kube_objects.components import DATABASE_CLAIM
from harness.simulator.kube_objects.installation import Claim
from harness.simulator.kube_objects.pod_status import WAIT, pod_uid
from harness.simulator.kube_objects.snapshots import Labels, pod_snapshot, uid
from harness.simulator.kube_objects.usage import ContainerUsage, Usage
from harness.simulator.kube_objects.view import KubernetesView
from harness.simulator.profile.store_products import StoreProduct
from harness.simulator.workflows.launcher import CFS_PERIODS_PER_S, Launch
from harness.simulator.workflows.templates import EXEC_IMAGE

# --- a kubelet's pages: ``/metrics``, ``/metrics/cadvisor`` and ``/stats/summary`` -----------------------------------
# Names, labels and help are those of Kubernetes 1.32 (cAdvisor's metrics/prometheus.go); samples have no
# timestamps.


class _Cgroup(NamedTuple):
    """A cgroup measured by cAdvisor: the node (root), a pod, or a container. `started` in seconds since 1970.

    `cfs` are the periods of the kernel's scheduler and the throttled ones; none without a CPU limit.
    """

    labels: dict[str, str]
    core_s: float
    memory: float
    started: float
    cfs: tuple[int, int] | None = None


class Kubelet:
    """Renders the pages of one node's kubelet."""

    def __init__(self, view: KubernetesView, node: Node) -> None:
        self._view = view
        self._node = node

    # --- Prometheus ---------------------------------------------------------------------------------------------

    def metrics(self) -> str:
        """``/metrics``: the volumes of the node's pods, and the number of pods."""
        volumes: dict[str, list[Series]] = {"capacity": [], "available": [], "used": []}
        for pod in self._node.pods.values():
            for claim in self._claims(pod):
                labels = {"namespace": claim.namespace, "persistentvolumeclaim": claim.name}
                used = self._used(claim)
                for what, value in (("capacity", claim.capacity), ("available", claim.capacity - used), ("used", used)):
                    volumes[what].append((labels, value))
        families: list[Family] = [
            (f"kubelet_volume_stats_{what}_bytes", "gauge", f"[ALPHA] Bytes {what} in the volume", series)
            for what, series in volumes.items()
        ]
        running: list[Series] = [({}, len(self._node.pods))]
        text = "[BETA] Number of pods that have a running pod sandbox"
        return written([*families, ("kubelet_running_pods", "gauge", text, running)])

    def cadvisor(self) -> str:
        """``/metrics/cadvisor``: the node as the root, pods and containers as groups below it."""
        groups = list(self._cgroups())
        memory = [(group.labels, int(group.memory)) for group in groups]
        in_use = "Current memory usage in bytes, including all memory regardless of when it was accessed"
        families: list[Family] = [
            ("container_cpu_usage_seconds_total", "counter", "Cumulative cpu time consumed in seconds.",
             [({**group.labels, "cpu": "total"}, group.core_s) for group in groups]),
            ("container_cpu_cfs_periods_total", "counter", "Number of elapsed enforcement period intervals.",
             [(group.labels, group.cfs[0]) for group in groups if group.cfs]),
            ("container_cpu_cfs_throttled_periods_total", "counter", "Number of throttled period intervals.",
             [(group.labels, group.cfs[1]) for group in groups if group.cfs]),
            ("container_memory_usage_bytes", "gauge", in_use, memory),
            ("container_memory_working_set_bytes", "gauge", "Current working set in bytes.", memory),
            ("container_start_time_seconds", "gauge", "Start time of the container since unix epoch in seconds.",
             [(group.labels, group.started) for group in groups]),
            ("machine_cpu_cores", "gauge", "Number of logical CPU cores.", [(self._machine(), self._node.pool.cpu)]),
            ("machine_memory_bytes", "gauge", "Amount of memory installed on the machine.",
             [(self._machine(), int(self._node.pool.memory))]),
        ]  # fmt: skip
        return written(families)

    def _machine(self) -> dict[str, str]:
        kinds = {"boot_id": "boot", "machine_id": "machine", "system_uuid": "system"}
        return {label: uid(kind, self._node.name) for label, kind in kinds.items()}

    def _cgroups(self) -> Iterator[_Cgroup]:
        def labels(group: str, container: str = "", image: str = "", name: str = "", of: Usage | None = None) -> Any:
            namespace, pod = (of.namespace, of.name) if of is not None else ("", "")
            return {
                "container": container, "id": group, "image": image, "name": name, "namespace": namespace, "pod": pod,
            }  # fmt: skip

        whole = self._view.meter.node(self._node)
        yield _Cgroup(labels("/"), whole.core_s, whole.memory, self._second(self._node.created))
        for pod, used in self._view.meter.pods(self._node):
            started = self._second(pod.started)
            slice_name = f"kubepods-burstable-pod{self._uid(pod).replace('-', '_')}.slice"
            group = f"/kubepods.slice/kubepods-burstable.slice/{slice_name}"
            yield _Cgroup(labels(group, of=used), used.core_s, used.memory, started)
            for each in used.containers:
                name = uid(pod.name, each.name).replace("-", "") * 2
                scope = f"{group}/cri-containerd-{name}.scope"
                image = EXEC_IMAGE if each.name == WAIT else pod.images[0]
                here = labels(scope, each.name, image, name, used)
                yield _Cgroup(here, each.core_s, each.memory, started, _cfs(pod, each))

    # --- the summary --------------------------------------------------------------------------------------------

    def summary(self) -> dict[str, Any]:
        """``/stats/summary`` as a document."""
        view, node = self._view, self._node
        return {
            "node": {
                "nodeName": node.name,
                "startTime": view.calendar.stamp(node.created),
                **self._amounts(view.meter.node(node)),
            },
            "pods": [self._pod_summary(pod, used) for pod, used in view.meter.pods(node)],
        }

    def _pod_summary(self, pod: Pod, used: Usage) -> dict[str, Any]:
        started = self._view.calendar.stamp(pod.started or 0.0)
        volumes = [self._volume(claim) for claim in self._claims(pod)]
        return {
            "podRef": {"name": pod.name, "namespace": pod.namespace, "uid": self._uid(pod)},
            "startTime": started,
            "containers": [
                {"name": container.name, "startTime": started, **self._amounts(container)}
                for container in used.containers
            ],
            **self._amounts(used),
            **({"volume": volumes} if volumes else {}),
        }

    def _amounts(self, used: Usage | ContainerUsage) -> dict[str, Any]:
        stamp, memory = self._view.calendar.stamp(self._view.platform.loop.now), int(used.memory)
        cpu = {"usageNanoCores": round(used.cpu * 1e9), "usageCoreNanoSeconds": round(used.core_s * 1e9)}
        return {
            "cpu": {"time": stamp, **cpu},
            "memory": {"time": stamp, "usageBytes": memory, "workingSetBytes": memory},
        }

    def _volume(self, claim: Claim) -> dict[str, Any]:
        used = self._used(claim)
        return {
            "time": self._view.calendar.stamp(self._view.platform.loop.now),
            "name": "data",
            "pvcRef": {"name": claim.name, "namespace": claim.namespace},
            "capacityBytes": int(claim.capacity),
            "usedBytes": int(used),
            "availableBytes": int(claim.capacity - used),
            "inodes": 1_310_720,
            "inodesFree": 1_300_000,
            "inodesUsed": 10_720,
        }

    def _claims(self, pod: Pod) -> list[Claim]:
        """The volume claims mounted by a pod."""
        claim = self._view.claims.get(pod.owner.claim) if isinstance(pod.owner, Labels) else None
        return [claim] if claim is not None else []

    def _used(self, claim: Claim) -> float:
        """Bytes in use on a claim's volume."""
        platform = self._view.platform
        used = platform.server.database.used if claim.name == DATABASE_CLAIM else platform.store.used
        return min(used, claim.capacity)

    def _second(self, t: float | None) -> float:
        return self._view.calendar.ns(t or 0.0) / 1e9

    @staticmethod
    def _uid(pod: Pod) -> str:
        return pod_uid(pod_snapshot(pod, ""))


def _cfs(pod: Pod, container: ContainerUsage) -> tuple[int, int] | None:
    """Periods in which a step's command computed, and those in which its limit throttled it."""
    if container.name == WAIT or not pod.limit_cpu or not pod.usage_cpu or not isinstance(pod.launch, Launch):
        return None
    periods = round(CFS_PERIODS_PER_S * container.core_s / pod.usage_cpu)
    return periods, periods if pod.launch.throttled else 0


# With a scheme before the name, and a port after it.
_SERVICE = re.compile(r"/api/v1/namespaces/(?P<namespace>[^/]+)/services/(https?:)?(?P<name>[^:/]+)(:[^/]*)?/proxy")
_TEXT_FORMAT = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Proxies:
    """The proxy routes of nodes and services below ``/api/v1``, and ``/metrics`` of the KFP API server."""

    def __init__(self, view: KubernetesView, gateway: Gateway, advance: Callable[[], None]) -> None:
        self._view = view
        self._gateway = gateway
        self._advance = advance

    def mount(self, app: web.Application) -> None:
        """Add all routes to the application."""
        app.middlewares.append(self._without_endpoints)
        router, api = app.router, "/api/v1"
        router.add_get("/metrics", self._api_metrics)
        router.add_get(f"{api}/nodes/{{node}}/proxy/{{path:.+}}", self._kubelet)
        router.add_get(f"{api}/namespaces/{{namespace}}/services/{{service}}/proxy/{{path:.+}}", self._service)

    @web.middleware
    async def _without_endpoints(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        """Refuse requests to a service whose pods are not ready, before its program would get them."""
        its = _SERVICE.match(request.path)
        if its is not None and not self._view.answers(its["namespace"], its["name"]):
            raise ApiError(503, "ServiceUnavailable", f'no endpoints available for service "{its["name"]}"')
        return await handler(request)

    async def _api_metrics(self, _: web.Request) -> web.Response:
        self._advance()
        return _text(metrics.api_server(self._view.platform, self._gateway.calls, self._gateway.durations))

    async def _kubelet(self, request: web.Request) -> web.Response:
        self._advance()
        name, path = request.match_info["node"].partition(":")[0], _path(request)
        node = self._view.platform.cluster.nodes.get(name)
        if node is None:
            raise ApiError(404, "NotFound", f'nodes "{name}" not found', {"name": name, "kind": "nodes"})
        kubelet = Kubelet(self._view, node)
        if path == "stats/summary":
            return web.json_response(kubelet.summary())
        pages = {"metrics": kubelet.metrics, "metrics/cadvisor": kubelet.cadvisor}
        if path not in pages:
            return web.Response(status=404, text="404 page not found\n")
        return _text(pages[path]())

    async def _service(self, request: web.Request) -> web.Response:
        self._advance()
        platform, name = self._view.platform, request.match_info["service"].removeprefix("http:").partition(":")[0]
        match name, _path(request):
            case "ml-pipeline", "metrics":
                return await self._api_metrics(request)
            case "workflow-controller-metrics" | "workflow-controller", "metrics":
                return _text(metrics.workflow_controller(platform))
            case "seaweedfs", "metrics" if self._has(StoreProduct.SEAWEEDFS):
                return _text(metrics.seaweedfs(platform))
            case "minio-service", "minio/v2/metrics/cluster" if self._has(StoreProduct.MINIO):
                return _text(metrics.minio(platform))
            case "mysqld-exporter", "metrics" if platform.hetida is None:
                return _text(metrics.mysqld(platform))
            case "cluster-autoscaler", "metrics":
                return _text(metrics.cluster_autoscaler(platform))
        raise ApiError(404, "NotFound", f'services "{name}" not found', {"name": name, "kind": "services"})

    def _has(self, product: StoreProduct) -> bool:
        return self._view.platform.store.settings.product is product


def _path(request: web.Request) -> str:
    """The path behind the proxy; some clients encode its slashes as ``%2F``."""
    return unquote(request.match_info["path"]).rstrip("/")


def _text(page: str) -> web.Response:
    return web.Response(text=page, headers={"Content-Type": _TEXT_FORMAT})
