"""Discovery: groups, types, verbs, and enough of OpenAPI for `kubectl`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from harness.simulator.kube_api.resource import READ_VERBS, Resource

Document = dict[str, Any]

_UNDESCRIBED = (
    "The simulated platform does not describe fields: see https://kubernetes.io/docs/reference/kubernetes-api/"
)
AGGREGATED = "apidiscovery.k8s.io"
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
    names = dict.fromkeys(each.group for each in resources if each.group)
    listed = [_group(name, resources) for name in names]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}


def group(name: str, resources: Sequence[Resource]) -> Document:
    """The document at ``/apis/<group>``."""
    return {"kind": "APIGroup", "apiVersion": "v1", **_group(name, resources)}


def _group(name: str, resources: Sequence[Resource]) -> Document:
    found = dict.fromkeys(each.version for each in resources if each.group == name)
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
        "status": {"kind": resource.kind, "verbs": ["get"]},
    }
    return [(each, kinds[each]) for each in resource.subresources]


def aggregated(resources: Sequence[Resource], format_version: str, *, core: bool) -> Document:
    """``/api`` or ``/apis`` with all types in one document, in this version of the discovery format."""
    names = dict.fromkeys(each.group for each in resources if (not each.group) == core)
    items = []
    for name in names:
        versions = dict.fromkeys(each.version for each in resources if each.group == name)
        described = [
            {
                "version": version,
                "resources": [
                    _aggregated_entry(each) for each in resources if (each.group, each.version) == (name, version)
                ],
                "freshness": "Current",
            }
            for version in versions
        ]
        items.append({"metadata": {"name": name, "creationTimestamp": None}, "versions": described})
    api_version = f"{AGGREGATED}/{format_version}"
    return {"kind": "APIGroupDiscoveryList", "apiVersion": api_version, "metadata": {}, "items": items}


def _aggregated_entry(resource: Resource) -> Document:
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    entry: Document = {
        "resource": resource.plural,
        "responseKind": kind,
        "scope": "Namespaced" if resource.namespaced else "Cluster",
        "singularResource": resource.kind.lower(),
        **_usage(resource),
    }
    subresources = [
        {
            "subresource": name,
            "responseKind": {"group": resource.group, "version": resource.version}
            | {key: about[key] for key in ("group", "version", "kind") if key in about},
            "verbs": about["verbs"],
        }
        for name, about in _subresources(resource)
    ]
    if subresources:
        entry["subresources"] = subresources
    return entry


def openapi_index(resources: Sequence[Resource]) -> Document:
    """The document at ``/openapi/v3``: the paths of the group versions' documents."""
    paths = {_root(each): {"serverRelativeURL": f"/openapi/v3/{_root(each)}"} for each in resources}
    return {"paths": paths}


def openapi(root: str, resources: Sequence[Resource]) -> Document | None:
    """The document at ``/openapi/v3/<root>``: types with open fields; none for an unknown group version."""
    here = [each for each in resources if _root(each) == root]
    if not here:
        return None
    paths: Document = {}
    schemas: Document = {}
    for resource in here:
        kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
        schema = f"{resource.group or 'core'}.{resource.version}.{resource.kind}"
        schemas[schema] = {
            "type": "object",
            "description": _UNDESCRIBED,
            "x-kubernetes-group-version-kind": [kind],
            "x-kubernetes-preserve-unknown-fields": True,
        }
        place = "namespaces/{namespace}/" if resource.namespaced else ""
        answer = {"content": {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}}
        get = {
            "responses": {"200": {"description": "OK", **answer}},
            "x-kubernetes-action": "get",
            "x-kubernetes-group-version-kind": kind,
        }
        paths[f"/{root}/{place}{resource.plural}/{{name}}"] = {"get": get}
    information = {"title": "Kubernetes", "version": VERSION["gitVersion"]}
    return {"openapi": "3.0.0", "info": information, "paths": paths, "components": {"schemas": schemas}}


def _root(resource: Resource) -> str:
    return f"apis/{resource.api_version}" if resource.group else f"api/{resource.api_version}"


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


def wants(accept: str) -> Mapping[str, str] | None:
    """Parameters of the `Accept` clause for aggregated discovery; none if plain JSON comes first."""
    for clause in accept.split(","):
        media, *parameters = (part.strip() for part in clause.split(";"))
        found = dict(part.split("=", 1) for part in parameters if "=" in part)
        if media == "application/json" and found.get("g") == AGGREGATED and found.get("v") in ("v2", "v2beta1"):
            return found
        if media in ("application/json", "*/*") and "g" not in found:
            return None
    return None
