"""The representations for clients: whole objects, or metadata only."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from harness.simulator.kube_api.errors import not_acceptable
from harness.simulator.kube_api.resource import Resource
from harness.simulator.kube_api.store import ObjectVersion

TAIL = b"]}"  # ends every list
_PARTIAL = "PartialObjectMetadata"
_METADATA_VERSIONS = ("meta.k8s.io/v1", "meta.k8s.io/v1beta1")


@dataclass(frozen=True, slots=True)
class Shape:
    """A representation of one type: whole objects, or their metadata only, as of an API version of their own.

    A list is `head`, the items joined by commas, and `TAIL`.
    """

    resource: Resource
    of_metadata: str = ""

    def head(self, metadata: Mapping[str, Any]) -> bytes:
        """The list up to its items."""
        kind, api_version = self.resource.kind, self.resource.api_version
        if self.of_metadata:
            kind, api_version = _PARTIAL, self.of_metadata
        head = {"kind": f"{kind}List", "apiVersion": api_version, "metadata": metadata}
        return orjson.dumps(head)[:-1] + b',"items":['

    def item(self, version: ObjectVersion) -> bytes:
        """An object within a list: items of built-in types leave out their kind, those of custom types repeat it."""
        whole = not (self.of_metadata or self.resource.custom)
        return version.encoded(self.resource) if whole else self.alone(version)

    def alone(self, version: ObjectVersion) -> bytes:
        """An object by itself, or in a watch event."""
        resource = self.resource
        if self.of_metadata:
            metadata = version.manifest(resource)["metadata"]
            return orjson.dumps({"kind": _PARTIAL, "apiVersion": self.of_metadata, "metadata": metadata})
        named = b'{"kind":"%s","apiVersion":"%s",' % (resource.kind.encode(), resource.api_version.encode())
        return named + version.encoded(resource)[1:]


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
                return Shape(resource)
            case "PartialObjectMetadata" | "PartialObjectMetadataList" if api_version in _METADATA_VERSIONS:
                return Shape(resource, api_version)
    raise not_acceptable()
