"""The writes of API clients to the simulated cluster."""

from collections.abc import Mapping
from typing import Any, Protocol

from harness.simulator.kube_api.resource import Manifest, Resource


class Actions(Protocol):
    """Implemented by the model, which puts its changes into the store. Each method can refuse with `ApiError`."""

    def make(self, resource: Resource, namespace: str, document: Manifest, *, dry: bool = False) -> None:
        """Put a new object into the store, whose metadata the server has completed; if `dry`, only check it."""
        ...

    def delete(self, plural: str, namespace: str, name: str, grace_s: float | None) -> None:
        """Delete an object; `grace_s` is the requested grace period: none for the default, 0 for at once."""
        ...

    def patch(self, plural: str, namespace: str, name: str, patch: Mapping[str, Any]) -> None:
        """Apply a JSON merge patch (RFC 7386), to which every kind of client patch is converted.

        Scaling a deployment arrives as ``{"spec": {"replicas": n}}``, cordoning a node as
        ``{"spec": {"unschedulable": true}}``, uncordoning it as ``{"spec": {"unschedulable": null}}``.
        """
        ...

    def evict(self, namespace: str, name: str, grace_s: float | None = None) -> None:
        """Evict a pod unless a disruption budget protects it (429 ``TooManyRequests``); `grace_s` as for `delete`."""
        ...
