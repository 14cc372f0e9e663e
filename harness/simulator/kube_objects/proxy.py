"""The Kubernetes API's proxies: kubelets' statistics and components' metrics."""

import re
from collections.abc import Awaitable, Callable
from urllib.parse import unquote

from aiohttp import web

from harness.simulator.kfp.rest import Gateway
from harness.simulator.kube_api import ApiError
from harness.simulator.kube_objects import metrics
from harness.simulator.kube_objects.kubelet_pages import Kubelet
from harness.simulator.kube_objects.view import KubernetesView
from harness.simulator.profile.store_products import StoreProduct

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
