"""The routes of the Kubernetes API."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from aiohttp import web

from harness.simulator.kube_api import errors, writing
from harness.simulator.kube_api.actions import Actions
from harness.simulator.kube_api.discovery import add_descriptions, json_answer
from harness.simulator.kube_api.listing import ListOptions, flag, parse_options, read_page
from harness.simulator.kube_api.resource import Resource
from harness.simulator.kube_api.shapes import TAIL, Shape, negotiate
from harness.simulator.kube_api.store import ObjectStore, ObjectVersion
from harness.simulator.kube_api.watching import watch
from harness.simulator.kube_api.writing import Creations

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]

_MAY = {"metadata": {}, "status": {"allowed": True}}
_REVIEW = "/apis/authorization.k8s.io/v1"
_RENDERED_AT_ONCE = 500  # objects; then other requests get a turn

_watches = web.AppKey("kubeapi_watches", set[asyncio.Task[Any]])


def mount(app: web.Application, store: ObjectStore, actions: Actions, now: Callable[[], int]) -> None:
    """Serve the store's objects under ``/api`` and ``/apis``, with discovery, OpenAPI and health checks.

    Every client may do everything, with any token and with none.

    Args:
        app: an application that has not started.
        store: the objects; can be written to at any time from the same event loop.
        actions: carries out clients' writes.
        now: the present in UTC ns.
    """
    app[_watches] = set()
    app.on_shutdown.append(_end_watches)
    ours = partial(_is_below, _roots(store))
    creations = Creations(store, actions, now)
    app.middlewares.append(_errors_of(ours))
    for path in ("/healthz", "/readyz", "/livez"):
        app.router.add_get(path, _healthy)
    add_descriptions(app.router, store.resources)
    app.router.add_post(f"{_REVIEW}/selfsubjectaccessreviews", _allowed)
    for resource in store.resources:
        _Served(resource, store, actions, creations).add_routes(app.router)


async def _end_watches(app: web.Application) -> None:
    """Cancel open watches, so that the server can stop without waiting for their timeouts."""
    open_watches = app[_watches]
    for task in tuple(open_watches):
        task.cancel()


async def _healthy(_: web.Request) -> web.Response:
    return web.Response(text="ok")


async def _allowed(request: web.Request) -> web.Response:
    """Whether the client may do something: everything."""
    return json_answer(writing.read_object(await request.read(), request.content_type) | _MAY, status=201)


def _roots(store: ObjectStore) -> frozenset[str]:
    """The paths below which everything is this API's."""
    groups = {f"/apis/{resource.api_version}" for resource in store.resources if resource.group}
    return frozenset(("/api/v1", "/version", "/healthz", "/readyz", "/livez", "/openapi", _REVIEW, *groups))


def _is_below(roots: frozenset[str], path: str) -> bool:
    return path in ("/api", "/apis") or any(path == root or path.startswith(f"{root}/") for root in roots)


def _errors_of(ours: Callable[[str], bool]) -> Any:
    """Middleware: errors below the API's paths become `Status` objects; other paths are left alone."""

    @web.middleware
    async def answer_errors(request: web.Request, handler: _Handler) -> web.StreamResponse:
        path = request.path
        try:
            return await handler(request)
        except errors.ApiError as error:
            return json_answer(error.status, status=error.code)
        except web.HTTPMethodNotAllowed:
            if not ours(path):
                raise
            return json_answer(errors.method_not_allowed().status, status=405)
        except web.HTTPNotFound:
            if ours(path) or path.startswith("/api/"):
                return json_answer(errors.unknown_path().status, status=404)
            # An unknown group. Other services under /apis, such as KFP, begin with their version.
            if path.startswith("/apis/") and not path.startswith("/apis/v"):
                return web.Response(text="404 page not found\n", status=404)
            raise

    return answer_errors


class _Served:
    """The routes of one resource type."""

    def __init__(self, resource: Resource, store: ObjectStore, actions: Actions, creations: Creations) -> None:
        self.resource = resource
        self.store = store
        self.actions = actions
        self.creations = creations

    def add_routes(self, router: web.UrlDispatcher) -> None:
        resource = self.resource
        root = f"/apis/{resource.api_version}" if resource.group else f"/api/{resource.api_version}"
        everywhere = f"{root}/{resource.plural}"
        collection = f"{root}/namespaces/{{namespace}}/{resource.plural}" if resource.namespaced else everywhere
        one = f"{collection}/{{name}}"
        for path in dict.fromkeys((everywhere, collection)):
            router.add_get(path, self.list)
        if resource.listing is None:
            router.add_post(collection, self.create)
        router.add_get(one, self.get)
        for verb, path, add, handler in (
            ("delete", one, router.add_delete, self.delete),
            ("patch", one, router.add_patch, self.patch),
        ):
            if resource.can(verb):
                add(path, handler)
        if "eviction" in resource.subresources:
            router.add_post(f"{one}/eviction", self.evict)
        if "scale" in resource.subresources:
            router.add_get(f"{one}/scale", self.get_scale)
            router.add_patch(f"{one}/scale", self.scale)
            router.add_put(f"{one}/scale", self.scale)

    async def list(self, request: web.Request) -> web.StreamResponse:
        options = parse_options(self.resource, request.match_info.get("namespace", ""), request.query)
        shape = self._shape(request)
        if not options.watch:
            page = read_page(self.store, options)
            return await _send_list(request, shape, page.objects, page.metadata)
        if not self.resource.can("watch"):
            raise errors.method_not_allowed()
        return await self._watch(request, options, shape)

    async def _watch(self, request: web.Request, options: ListOptions, shape: Shape) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        response.enable_chunked_encoding()
        await response.prepare(request)
        task = asyncio.current_task()
        assert task is not None
        open_watches = request.app[_watches]
        open_watches.add(task)
        try:
            async for lines in watch(self.store, options, shape):
                if request.transport is None or request.transport.is_closing():
                    break
                if lines:
                    await response.write(lines)
            await response.write_eof()
        finally:
            open_watches.discard(task)
        return response

    async def create(self, request: web.Request) -> web.StreamResponse:
        if not self.resource.can("create"):
            raise errors.not_creatable(self.resource)
        body = writing.read_object(await request.read(), request.content_type)
        dry = flag(request.query, "dryRun")
        made = self.creations.create(self.resource, request.match_info.get("namespace", ""), body, dry=dry)
        return json_answer(self._shape(request).alone(made), status=201)

    async def get(self, request: web.Request) -> web.StreamResponse:
        shape = self._shape(request)
        name = request.match_info["name"]
        stored = self.store.get(self.resource, request.match_info.get("namespace", ""), name)
        if stored is None:
            raise errors.not_found(self.resource, name)
        return json_answer(shape.alone(stored))

    async def delete(self, request: web.Request) -> web.StreamResponse:
        target = self._target(request)
        options = writing.read_options(await request.read(), request.content_type)
        last = writing.delete(target, self.actions, request.query, options)
        if last is not None:
            return json_answer(self._shape(request).alone(last))
        uid = target.document()["metadata"].get("uid", "")
        group = {"group": self.resource.group} if self.resource.group else {}
        details = {"name": target.name, **group, "kind": self.resource.plural, "uid": uid}
        status = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details}
        return json_answer(status)

    async def patch(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        changed = writing.patch(self._target(request), self.actions, request.content_type, body)
        return json_answer(self._shape(request).alone(changed))

    async def evict(self, request: web.Request) -> web.StreamResponse:
        eviction = writing.read_options(await request.read(), request.content_type)
        return json_answer(writing.evict(self._target(request), self.actions, request.query, eviction), status=201)

    async def get_scale(self, request: web.Request) -> web.StreamResponse:
        return json_answer(writing.scale_of(self._target(request)))

    async def scale(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        content_type = request.content_type if request.method == "PATCH" else None
        target = self._target(request)
        return json_answer(writing.scale(target, self.actions, content_type, body))

    def _shape(self, request: web.Request) -> Shape:
        return negotiate(request.headers.get("Accept", ""), self.resource)

    def _target(self, request: web.Request) -> writing.Target:
        if flag(request.query, "dryRun"):
            raise errors.no_dry_run()
        match = request.match_info
        return writing.Target(self.store, self.resource, match.get("namespace", ""), match["name"])


async def _send_list(
    request: web.Request, shape: Shape, objects: list[ObjectVersion], metadata: dict[str, Any]
) -> web.StreamResponse:
    """Send a short list at once, a long one in pieces, so that it does not block other requests."""
    head = shape.head(metadata)
    if len(objects) <= _RENDERED_AT_ONCE:
        return json_answer(head + b",".join(shape.item(stored) for stored in objects) + TAIL)
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    response.enable_chunked_encoding()
    await response.prepare(request)
    await response.write(head)
    for first in range(0, len(objects), _RENDERED_AT_ONCE):
        piece = b",".join(shape.item(stored) for stored in objects[first : first + _RENDERED_AT_ONCE])
        await response.write(piece if first == 0 else b"," + piece)
        await asyncio.sleep(0)
    await response.write_eof(TAIL)
    return response
