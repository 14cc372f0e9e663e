"""The routes of discovery."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import orjson
from aiohttp import web

from harness.simulator.kube_api import discovery
from harness.simulator.kube_api.resource import Resource

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def add_descriptions(router: web.UrlDispatcher, resources: Sequence[Resource]) -> None:
    """Serve the version, and the groups and types."""
    _add_discovery(router, resources)
    _add_openapi(router)


def json_answer(document: object, *, status: int = 200, content_type: str = "application/json") -> web.Response:
    """A response with a document, or with JSON that is ready."""
    body = document if isinstance(document, bytes) else orjson.dumps(document)
    return web.Response(body=body, status=status, headers={"Content-Type": content_type})


def _fixed(document: object) -> _Handler:
    async def answer(_: web.Request) -> web.StreamResponse:
        return json_answer(document)

    return answer


def _add_discovery(router: web.UrlDispatcher, resources: Sequence[Resource]) -> None:
    async def root(request: web.Request, *, core: bool) -> web.Response:
        return json_answer(discovery.core_versions(request.host) if core else discovery.groups(resources))

    for slash in ("", "/"):  # clients ask either way
        router.add_get(f"/version{slash}", _fixed(discovery.VERSION))
        router.add_get(f"/api{slash}", partial(root, core=True))
        router.add_get(f"/apis{slash}", partial(root, core=False))
    for api_version in dict.fromkeys(resource.api_version for resource in resources):
        path = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        router.add_get(path, _fixed(discovery.resource_list(api_version, resources)))
    for group in dict.fromkeys(resource.group for resource in resources if resource.group):
        router.add_get(f"/apis/{group}", _fixed(discovery.group(group, resources)))


def _add_openapi(router: web.UrlDispatcher) -> None:
    async def swagger(request: web.Request) -> web.Response:
        if "protobuf" in request.headers.get("Accept", ""):
            return json_answer(discovery.encoded_swagger(), content_type="application/octet-stream")
        return json_answer(discovery.swagger())

    router.add_get("/openapi/v2", swagger)
