"""What a client of the API may do to the simulated cluster."""

from collections.abc import Mapping
from typing import Any, Protocol


class Actions(Protocol):
    """Implemented by the model. Each may raise `ApiError` to refuse; what it changes it puts into the store."""

    def delete(self, plural: str, namespace: str, name: str, grace_s: float | None) -> None:
        """End an object; `grace_s` is the client's wish, none where it has none, 0 for at once."""
        ...

    def patch(self, plural: str, namespace: str, name: str, patch: Mapping[str, Any]) -> None:
        """Apply a JSON merge patch (RFC 7386): whatever way the client wrote the change, it arrives as one.

        Scaling a deployment arrives as ``{"spec": {"replicas": n}}``, cordoning a node as
        ``{"spec": {"unschedulable": true}}``, uncordoning it as ``{"spec": {"unschedulable": null}}``.
        """
        ...

    def evict(self, namespace: str, name: str, grace_s: float | None = None) -> None:
        """End a pod unless something guards it (429 ``TooManyRequests``); `grace_s` as for `delete`."""
        ...
