"""Resource types: names, verbs, and the rendering of the model's snapshots."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

Snapshot = object  # an immutable value made by the model
Manifest = dict[str, Any]

ALL_VERBS = ("delete", "get", "list", "patch", "watch")
READ_VERBS = ("get", "list")
DOCUMENT_VERBS = ("create", *ALL_VERBS)


@dataclass(frozen=True, slots=True)
class Resource:
    """One Kubernetes resource type, and the rendering of the model's snapshots.

    With `listing`, nothing is stored: every read computes (namespace, name, snapshot).
    """

    group: str  # "" for the core
    version: str
    plural: str
    kind: str
    namespaced: bool
    render: Callable[[Snapshot], Manifest]  # without apiVersion, kind and metadata.resourceVersion
    labels: Callable[[Snapshot], Mapping[str, str]]
    fields: Callable[[Snapshot], Mapping[str, str]]  # values of the field selectors
    short_names: tuple[str, ...] = ()
    listing: Callable[[], Iterable[tuple[str, str, Snapshot]]] | None = None
    selectable: tuple[str, ...] = ("metadata.name", "metadata.namespace")  # supported field selectors
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS  # of stored types; computed ones have `READ_VERBS`
    subresources: tuple[str, ...] = ()  # any of "eviction", "scale"
    returns_deleted: bool = False  # a delete returns the object instead of a Status
    custom: bool = False  # from a CustomResourceDefinition: list items repeat their type

    @property
    def api_version(self) -> str:
        """Group and version, such as ``v1`` or ``apps/v1``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def can(self, verb: str) -> bool:
        """Whether the type supports the verb."""
        return verb in (self.verbs if self.listing is None else READ_VERBS)

    @property
    def qualified(self) -> str:
        """The plural as in error messages: ``pods``, ``deployments.apps``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural
