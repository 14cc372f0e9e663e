"""The representations for clients: whole objects, tables for `kubectl get`, or metadata only."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

import orjson

from harness.simulator.kube_api.columns import AGE, NAME
from harness.simulator.kube_api.errors import bad_request, not_acceptable
from harness.simulator.kube_api.resource import Column, Manifest, Resource, Since
from harness.simulator.kube_api.store import ObjectVersion

TAIL = b"]}"  # ends every list


class Shape(Protocol):
    """A representation of one type. A list is `head`, the items joined by commas, and `TAIL`."""

    def head(self, metadata: Mapping[str, Any]) -> bytes:
        """The list up to its items."""
        ...

    def item(self, version: ObjectVersion) -> bytes:
        """An object within a list."""
        ...

    def alone(self, version: ObjectVersion, *, first: bool = True) -> bytes:
        """An object by itself, or in a watch event; `first` marks the first event."""
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

    def alone(self, version: ObjectVersion, *, first: bool = True) -> bytes:  # noqa: ARG002  # all events are alike
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

    def alone(self, version: ObjectVersion, *, first: bool = True) -> bytes:  # noqa: ARG002  # all events are alike
        """As `Shape.alone`."""
        return self.item(version)


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of cells under columns; `include` is the part of the object in each row."""

    resource: Resource
    now: Callable[[], int]
    include: str = "Metadata"
    api_version: str = "meta.k8s.io/v1"

    def head(self, metadata: Mapping[str, Any]) -> bytes:
        """As `Shape.head`."""
        definitions = [_definition(each) for each in _columns(self.resource)]
        return self._start(metadata) + orjson.dumps(definitions) + b',"rows":['

    def item(self, version: ObjectVersion) -> bytes:
        """As `Shape.item`."""
        return self._row(version.manifest(self.resource))

    def alone(self, version: ObjectVersion, *, first: bool = True) -> bytes:
        """A table with one row; in a watch only the first has column definitions."""
        manifest = version.manifest(self.resource)
        metadata = {"resourceVersion": str(version.version)} if version.version else {}
        head = self.head(metadata) if first else self._start(metadata) + b'null,"rows":['
        return head + self._row(manifest) + TAIL

    def _row(self, manifest: Manifest) -> bytes:
        now = self.now()
        cells = [_cell(column.value(manifest), now) for column in _columns(self.resource)]
        included: Manifest | None = None
        if self.include == "Metadata":
            included = _partial(manifest, self.api_version)
        elif self.include == "Object":
            included = {"kind": self.resource.kind, "apiVersion": self.resource.api_version, **manifest}
        return orjson.dumps({"cells": cells, "object": included})

    def _start(self, metadata: Mapping[str, Any]) -> bytes:
        head = {"kind": "Table", "apiVersion": self.api_version, "metadata": metadata}
        return orjson.dumps(head)[:-1] + b',"columnDefinitions":'


def negotiate(accept: str, resource: Resource, query: Mapping[str, str], now: Callable[[], int]) -> Shape:
    """The first supported representation of an `Accept` header.

    Raises:
        ApiError: 406 if none is supported, 400 for an unknown `includeObject`.
    """
    include = query.get("includeObject") or "Metadata"
    for clause in (accept or "*/*").split(","):
        media, *parameters = (part.strip() for part in clause.split(";"))
        if media not in ("application/json", "application/*", "*/*"):
            continue
        wanted = dict(part.split("=", 1) for part in parameters if "=" in part)
        api_version = f"{wanted.get('g', '')}/{wanted.get('v', '')}"
        match wanted.get("as", ""):
            case "":
                return Plain(resource)
            case _ if api_version not in ("meta.k8s.io/v1", "meta.k8s.io/v1beta1"):
                continue
            case "Table":
                if include not in ("Metadata", "Object", "None"):
                    why = f"Invalid value: \"{include}\": must be 'Metadata', 'Object', 'None', or empty"
                    raise bad_request(f"Unable to convert to Table as requested: includeObject: {why}")
                return Table(resource, now, include, api_version)
            case "PartialObjectMetadata" | "PartialObjectMetadataList":
                return MetadataOnly(resource, api_version)
    raise not_acceptable()


def human_duration(seconds: float) -> str:
    """An age as `kubectl` shows it, with about two digits of precision: ``119s 5m30s 47h 12d 3y40d``.

    Source: the steps that `kubectl get` documents by example and a real server's tables show.
    """
    whole = int(seconds)
    if whole < 0:
        return "0s" if whole == -1 else "<invalid>"  # clocks differ slightly
    unit, lesser_unit = next((unit, lesser) for limit, unit, lesser in _AGES if whole < limit)
    count, rest = divmod(whole, _SECONDS[unit])
    lesser = rest // _SECONDS[lesser_unit] if lesser_unit else 0
    return f"{count}{unit}{lesser}{lesser_unit}" if lesser else f"{count}{unit}"


_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "y": 365 * 86400}
# (limit in seconds, unit, unit of the remainder): the first row above the age applies.
_AGES = (
    (120, "s", ""), (600, "m", "s"), (3 * 3600, "m", ""), (8 * 3600, "h", "m"), (48 * 3600, "h", ""),
    (8 * 86400, "d", "h"), (2 * 365 * 86400, "d", ""), (8 * 365 * 86400, "y", "d"), (float("inf"), "y", ""),
)  # fmt: skip


def _cell(value: object, now: int) -> object:
    if not isinstance(value, Since):
        return value
    if not value.stamp:
        return f"{value.before}<unknown>{value.after}"
    then = datetime.fromisoformat(value.stamp).timestamp()
    return f"{value.before}{human_duration(now / 1e9 - then)}{value.after}"


def _definition(column: Column) -> dict[str, object]:
    """A column as clients read it; `kubectl get all` puts the kind before the values in the format ``name``."""
    name = "name" if column.name == "Name" else ""
    return {"name": column.name, "type": "string", "format": name, "description": "", "priority": 0}


def _columns(resource: Resource) -> tuple[Column, ...]:
    return resource.columns or (NAME, AGE)


def _list_head(kind: str, api_version: str, metadata: Mapping[str, Any]) -> bytes:
    head = {"kind": kind, "apiVersion": api_version, "metadata": metadata}
    return orjson.dumps(head)[:-1] + b',"items":['


def _partial(manifest: Manifest, api_version: str) -> Manifest:
    return {"kind": "PartialObjectMetadata", "apiVersion": api_version, "metadata": manifest["metadata"]}
