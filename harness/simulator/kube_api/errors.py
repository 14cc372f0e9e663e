"""Errors of the Kubernetes API, with the `Status` objects and messages of a real server."""

from collections.abc import Mapping
from typing import Any

from harness.simulator.kube_api.resource import Resource


class ApiError(Exception):
    """A refused request.

    Args:
        code: the HTTP status.
        reason: a single word for programs, such as ``NotFound``.
        message: text for people.
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
        """The `Status` object of the response."""
        document: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
            "reason": self.reason or None,
            "details": self.details,
            "code": self.code,
        }
        return {key: value for key, value in document.items() if value is not None}


def _about(resource: Resource, name: str) -> dict[str, Any]:
    group = {"group": resource.group} if resource.group else {}
    return {"name": name, **group, "kind": resource.plural}


def bad_request(message: str) -> ApiError:
    """A Status with code 400 for a malformed request."""
    return ApiError(400, "BadRequest", message)


def not_found(resource: Resource, name: str) -> ApiError:
    """404: the type has no object of this name."""
    group = f".{resource.group}" if resource.group else ""
    return ApiError(404, "NotFound", f'{resource.plural}{group} "{name}" not found', _about(resource, name))


def unknown_path() -> ApiError:
    """A Status with code 404 for a path of no known type."""
    return ApiError(404, "NotFound", "the server could not find the requested resource", {})


def not_creatable(resource: Resource) -> ApiError:
    """403: a client can't make objects of this type."""
    details = {"group": resource.group} if resource.group else {}
    message = f"{resource.qualified} is forbidden: the simulated platform can't create {resource.plural} for clients"
    return ApiError(403, "Forbidden", message, {**details, "kind": resource.plural})


def no_dry_run() -> ApiError:
    """400: changes are made, not tried."""
    return bad_request("the simulated platform does not try changes: leave out --dry-run=server")


def already_exists(resource: Resource, name: str) -> ApiError:
    """409: there is an object of this name."""
    return ApiError(409, "AlreadyExists", f'{resource.qualified} "{name}" already exists', _about(resource, name))


def method_not_allowed() -> ApiError:
    """405: verb not supported by the type."""
    message = "the server does not allow this method on the requested resource"
    return ApiError(405, "MethodNotAllowed", message, {})


def not_acceptable() -> ApiError:
    """406: none of the requested representations is supported."""
    return ApiError(406, "NotAcceptable", "only the following media types are accepted: application/json")


def unsupported_media_type(accepted: str) -> ApiError:
    """415: unsupported format of the body."""
    message = f"the body of the request was in an unknown format - accepted media types include: {accepted}"
    return ApiError(415, "UnsupportedMediaType", message)


def stale(resource: Resource, name: str) -> ApiError:
    """409: the object has changed since the client read it."""
    why = "the object has been modified; please apply your changes to the latest version and try again"
    message = f'Operation cannot be fulfilled on {resource.qualified} "{name}": {why}'
    return ApiError(409, "Conflict", message, _about(resource, name))


def precondition_failed(resource: Resource, name: str, why: str) -> ApiError:
    """409: the object does not meet the preconditions of a delete."""
    message = f'Operation cannot be fulfilled on {resource.kind} "{name}": {why}'
    return ApiError(409, "Conflict", message, {**_about(resource, name), "kind": resource.kind})


def expired(message: str, fresh_token: str = "") -> ApiError:
    """410: the history does not reach back far enough; `fresh_token` continues the list inconsistently."""
    return ApiError(410, "Expired", message, metadata={"continue": fresh_token} if fresh_token else None)


def invalid(group: str, kind: str, name: str, field: str, why: str, *, cause: str = "FieldValueInvalid") -> ApiError:
    """422: invalid value of a field."""
    its_type = f"{kind}.{group}" if group else kind
    details: dict[str, Any] = {"causes": [{"reason": cause, "message": why, "field": field}]}
    details |= {key: value for key, value in (("name", name), ("group", group), ("kind", kind)) if value}
    return ApiError(422, "Invalid", f'{its_type} "{name}" is invalid: {field}: {why}', details)


def version_too_large(asked: int, current: int) -> ApiError:
    """504: the requested version is newer than the server's."""
    causes = [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]
    message = f"Timeout: Too large resource version: {asked}, current: {current}"
    return ApiError(504, "Timeout", message, {"causes": causes, "retryAfterSeconds": 1})
