"""Errors of the KFP API: gRPC codes with their HTTP statuses, as grpc-gateway maps them."""

from enum import IntEnum


class Code(IntEnum):
    """gRPC status codes that the API server uses."""

    INVALID_ARGUMENT = 3
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    FAILED_PRECONDITION = 9
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14

    @property
    def http(self) -> int:
        """The HTTP status."""
        return _HTTP[self]


_HTTP = {
    Code.INVALID_ARGUMENT: 400,
    Code.NOT_FOUND: 404,
    Code.ALREADY_EXISTS: 409,
    Code.FAILED_PRECONDITION: 400,
    Code.UNIMPLEMENTED: 501,
    Code.INTERNAL: 500,
    Code.UNAVAILABLE: 503,
}


class RpcError(Exception):
    """A call that the API server refuses."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


def invalid(message: str) -> RpcError:
    """400."""
    return RpcError(Code.INVALID_ARGUMENT, message)


def not_found(kind: str, name: str) -> RpcError:
    """404, as the resource manager words it."""
    return RpcError(Code.NOT_FOUND, f"ResourceNotFoundError: {kind} {name} not found.")
