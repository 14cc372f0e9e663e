"""Errors of the Kubernetes API, as the `Status` objects and sentences of a real server."""

from collections.abc import Mapping
from typing import Any


class ApiError(Exception):
    """A request that the API refuses.

    Args:
        code: the HTTP status.
        reason: a single word that clients compare with, such as ``NotFound``.
        message: for people.
        details: `Status.details`: name, kind, group, causes, retryAfterSeconds.
        metadata: `Status.metadata`: the fresh continue token of an expired list.
    """

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: Mapping[str, Any] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = dict(details) if details is not None else None
        self.metadata = dict(metadata) if metadata is not None else {}

    @property
    def status(self) -> dict[str, Any]:
        """The `Status` object that is sent."""
        document: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "details": self.details,
            "code": self.code,
        }
        return {key: value for key, value in document.items() if value is not None}
