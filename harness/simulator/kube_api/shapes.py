"""The representations for clients: whole objects, or metadata only."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import orjson

from harness.simulator.kube_api.errors import not_acceptable
from harness.simulator.kube_api.resource import Manifest, Resource
from harness.simulator.kube_api.store import ObjectVersion

TAIL = b"]}"  # ends every list
_METADATA_VERSIONS = ("meta.k8s.io/v1", "meta.k8s.io/v1beta1")


class Shape(Protocol):
    """A representation of one type. A list is `head`, the items joined by commas, and `TAIL`."""

    def head(self, metadata: Mapping[str, Any]) -> bytes:
        """The list up to its items."""
        ...

    def item(self, version: ObjectVersion) -> bytes:
        """An object within a list."""
        ...

    def alone(self, version: ObjectVersion) -> bytes:
        """An object by itself, or in a watch event."""
        ...


@dataclass(frozen=True, slots=True)
class Plain:
    """Whole objects as JSON."""

    resource: Resource

    def head(self, metadata: Mapping[str, Any]) -> bytes:
        """As `Shape.head`."""
        return _list_head(f"{self.resource.kind}List", self.resource.api_version, metadata)

    def item(self, version: ObjectVersion) -> bytes:
        """Items of built-in types leave out their kind, those of custom types repeat it."""
        return self.alone(version) if self.resource.custom else version.encoded(self.resource)

    def alone(self, version: ObjectVersion) -> bytes:
        """As `Shape.alone`."""
        resource = self.resource
        named = b'{"kind":"%s","apiVersion":"%s",' % (resource.kind.encode(), resource.api_version.encode())
        return named + version.encoded(resource)[1:]


@dataclass(frozen=True, slots=True)
class MetadataOnly:
    """Only the metadata of each object."""

    resource: Resource
    api_version: str = "meta.k8s.io/v1"

    def head(self, metadata: Mapping[str, Any]) -> bytes:
        """As `Shape.head`."""
        return _list_head("PartialObjectMetadataList", self.api_version, metadata)

    def item(self, version: ObjectVersion) -> bytes:
        """As `Shape.item`."""
        return orjson.dumps(_partial(version.manifest(self.resource), self.api_version))

    def alone(self, version: ObjectVersion) -> bytes:
        """As `Shape.alone`."""
        return self.item(version)


def negotiate(accept: str, resource: Resource) -> Shape:
    """The first supported representation of an `Accept` header; tables, which `kubectl get` prefers, are not.

    Raises:
        ApiError: 406 if none is supported.
    """
    for clause in (accept or "*/*").split(","):
        media, *parameters = (part.strip() for part in clause.split(";"))
        if media not in ("application/json", "application/*", "*/*"):
            continue
        wanted = dict(part.split("=", 1) for part in parameters if "=" in part)
        api_version = f"{wanted.get('g', '')}/{wanted.get('v', '')}"
        match wanted.get("as", ""):
            case "":
                return Plain(resource)
            case "PartialObjectMetadata" | "PartialObjectMetadataList" if api_version in _METADATA_VERSIONS:
                return MetadataOnly(resource, api_version)
    raise not_acceptable()


def _list_head(kind: str, api_version: str, metadata: Mapping[str, Any]) -> bytes:
    head = {"kind": kind, "apiVersion": api_version, "metadata": metadata}
    return orjson.dumps(head)[:-1] + b',"items":['


def _partial(manifest: Manifest, api_version: str) -> Manifest:
    return {"kind": "PartialObjectMetadata", "apiVersion": api_version, "metadata": manifest["metadata"]}
