"""Discovery: groups, types and verbs; OpenAPI is empty, so that `kubectl` validates nothing before sending."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from typing import Any

import orjson
from aiohttp import web

from harness.simulator.kube_api.resource import READ_VERBS, Resource

Document = dict[str, Any]

VERSION = {
    "major": "1", "minor": "32", "gitVersion": "v1.32.4+simulated", "gitCommit": "", "gitTreeState": "clean",
    "emulationMajor": "1", "emulationMinor": "32", "minCompatibilityMajor": "1", "minCompatibilityMinor": "31",
    "buildDate": "1970-01-01T00:00:00Z", "goVersion": "", "compiler": "", "platform": "linux/amd64",
}  # fmt: skip


def core_versions(host: str) -> Document:
    """The document at ``/api``: the versions of the core group."""
    addresses = [{"clientCIDR": "0.0.0.0/0", "serverAddress": host}]
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}


def groups(resources: Sequence[Resource]) -> Document:
    """The document at ``/apis``: all groups."""
    names = dict.fromkeys(resource.group for resource in resources if resource.group)
    listed = [_group(name, resources) for name in names]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}


def group(name: str, resources: Sequence[Resource]) -> Document:
    """The document at ``/apis/<group>``."""
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, resources)}


def _group(name: str, resources: Sequence[Resource]) -> Document:
    found = dict.fromkeys(resource.version for resource in resources if resource.group == name)
    versions = [{"groupVersion": f"{name}/{each}", "version": each} for each in found]
    return {"name": name, "versions": versions, "preferredVersion": versions[0]}


def resource_list(api_version: str, resources: Iterable[Resource]) -> Document:
    """The document at ``/api/v1`` or ``/apis/<group>/<version>``: the types."""
    listed: list[Document] = []
    for resource in resources:
        if resource.api_version != api_version:
            continue
        listed.append(
            {
                "name": resource.plural,
                "singularName": resource.kind.lower(),
                "namespaced": resource.namespaced,
                "kind": resource.kind,
                **_usage(resource),
            }
        )
        listed.extend(
            {"name": f"{resource.plural}/{name}", "singularName": "", "namespaced": resource.namespaced, **about}
            for name, about in _subresources(resource)
        )
    document: Document = {"kind": "APIResourceList", "groupVersion": api_version, "resources": listed}
    return document if api_version == "v1" else {"apiVersion": "v1", **document}


def _usage(resource: Resource) -> Document:
    """Verbs, and short names and categories if there are any."""
    names = {"shortNames": list(resource.short_names), "categories": list(resource.categories)}
    verbs = resource.verbs if resource.listing is None else READ_VERBS
    return {"verbs": list(verbs), **{key: value for key, value in names.items() if value}}


def _subresources(resource: Resource) -> list[tuple[str, Document]]:
    kinds: dict[str, Document] = {
        "eviction": {"group": "policy", "version": "v1", "kind": "Eviction", "verbs": ["create"]},
        "scale": {"group": "autoscaling", "version": "v1", "kind": "Scale", "verbs": ["get", "patch", "update"]},
    }
    return [(subresource, kinds[subresource]) for subresource in resource.subresources]


def swagger() -> Document:
    """The document at ``/openapi/v2``: without types, so that clients validate nothing before sending."""
    information = {"title": "Kubernetes", "version": VERSION["gitVersion"]}
    return {"swagger": "2.0", "info": information, "paths": {}, "definitions": {}}


def encoded_swagger() -> bytes:
    """The same as a protobuf message, which `kubectl` requests (``openapi.v2.Document``)."""

    def field(number: int, content: bytes) -> bytes:
        assert len(content) < 128, "longer fields need a longer length"
        return bytes([number << 3 | 2, len(content)]) + content

    information = field(1, b"Kubernetes") + field(2, VERSION["gitVersion"].encode())
    return field(1, b"2.0") + field(2, information) + field(8, b"")


# --- the routes of discovery -----------------------------------------------------------------------------------------


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
        return json_answer(core_versions(request.host) if core else groups(resources))

    for slash in ("", "/"):  # clients ask either way
        router.add_get(f"/version{slash}", _fixed(VERSION))
        router.add_get(f"/api{slash}", partial(root, core=True))
        router.add_get(f"/apis{slash}", partial(root, core=False))
    for api_version in dict.fromkeys(resource.api_version for resource in resources):
        path = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
        router.add_get(path, _fixed(resource_list(api_version, resources)))
    for name in dict.fromkeys(resource.group for resource in resources if resource.group):
        router.add_get(f"/apis/{name}", _fixed(group(name, resources)))


def _add_openapi(router: web.UrlDispatcher) -> None:
    async def describe(request: web.Request) -> web.Response:
        if "protobuf" in request.headers.get("Accept", ""):
            return json_answer(encoded_swagger(), content_type="application/octet-stream")
        return json_answer(swagger())

    router.add_get("/openapi/v2", describe)
