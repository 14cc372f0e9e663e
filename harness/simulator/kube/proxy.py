"""What is reached through the Kubernetes API's proxies: kubelets' statistics and components' metrics."""

from collections.abc import Awaitable, Callable

from aiohttp import web

from harness.simulator.kfp.rest import Gateway
from harness.simulator.kube import metrics
from harness.simulator.kube.kubelet_pages import Kubelet
from harness.simulator.kube.view import KubernetesView
from harness.simulator.kubeapi import ApiError
from harness.simulator.store_products import StoreProduct

_TEXT = {"Content-Type": "text/plain; version=0.0.4; charset=utf-8"}
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Proxies:
    """Routes below ``/api/v1`` that answer for nodes, services and pods, and ``/metrics`` of the KFP API server."""

    def __init__(self, view: KubernetesView, gateway: Gateway, advance: Callable[[], None]) -> None:
        self._view = view
        self._gateway = gateway
        self._advance = advance

    def mount(self, app: web.Application) -> None:
        """Register all routes."""
        router, api = app.router, "/api/v1"
        router.add_get("/metrics", self._api_metrics)
        kubelet = f"{api}/nodes/{{node}}/proxy"
        router.add_get(f"{kubelet}/stats/summary", self._summary)
        for path, page in (
            ("metrics", Kubelet.metrics),
            ("metrics/cadvisor", Kubelet.cadvisor),
            ("metrics/resource", Kubelet.resource),
        ):
            router.add_get(f"{kubelet}/{path}", self._page(page))
        proxied = f"{api}/namespaces/{{namespace}}/services/{{service}}/proxy"
        router.add_get(f"{proxied}/metrics", self._service)
        router.add_get(f"{proxied}/minio/v2/metrics/cluster", self._minio)

    def _kubelet(self, request: web.Request) -> Kubelet:
        self._advance()
        name = request.match_info["node"].partition(":")[0]
        node = self._view.platform.cluster.nodes.get(name)
        if node is None:
            raise ApiError(404, "NotFound", f'nodes "{name}" not found', {"name": name, "kind": "nodes"})
        return Kubelet(self._view, node)

    def _page(self, page: Callable[[Kubelet], str]) -> Handler:
        async def answer(request: web.Request) -> web.StreamResponse:
            return web.Response(text=page(self._kubelet(request)), headers=_TEXT)

        return answer

    async def _summary(self, request: web.Request) -> web.Response:
        return web.json_response(self._kubelet(request).summary())

    async def _api_metrics(self, _: web.Request) -> web.Response:
        self._advance()
        text = metrics.api_server(self._view.platform, self._gateway.calls, self._gateway.durations)
        return web.Response(text=text, headers=_TEXT)

    async def _service(self, request: web.Request) -> web.Response:
        self._advance()
        platform, name = self._view.platform, request.match_info["service"].removeprefix("http:").partition(":")[0]
        match name:
            case "ml-pipeline":
                return await self._api_metrics(request)
            case "workflow-controller-metrics" | "workflow-controller":
                return web.Response(text=metrics.workflow_controller(platform), headers=_TEXT)
            case "seaweedfs" if self._has(StoreProduct.SEAWEEDFS):
                return web.Response(text=metrics.seaweedfs(platform), headers=_TEXT)
            case "mysqld-exporter" if platform.hetida is None:
                return web.Response(text=metrics.mysqld(platform), headers=_TEXT)
            case "cluster-autoscaler":
                return web.Response(text=metrics.cluster_autoscaler(platform), headers=_TEXT)
        raise ApiError(404, "NotFound", f'services "{name}" not found', {"name": name, "kind": "services"})

    async def _minio(self, request: web.Request) -> web.Response:
        self._advance()
        name = request.match_info["service"].removeprefix("http:").partition(":")[0]
        if name != "minio-service" or not self._has(StoreProduct.MINIO):
            raise ApiError(404, "NotFound", f'services "{name}" not found', {"name": name, "kind": "services"})
        return web.Response(text=metrics.minio(self._view.platform), headers=_TEXT)

    def _has(self, product: StoreProduct) -> bool:
        return self._view.platform.store.settings.product is product
