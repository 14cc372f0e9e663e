"""Errors of the KFP API: gRPC codes with their HTTP statuses, as grpc-gateway maps them, in the API server's words.

The server tells what went wrong from the outside in, as ``Failed to get a run: Failed to fetch run 7:
ResourceNotFoundError: Run 7 not found``, and in the details only the last of it (backend/src/common/util/error.go).
"""

from enum import IntEnum


class Code(IntEnum):
    """gRPC status codes that the API server uses."""

    INVALID_ARGUMENT = 3
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    FAILED_PRECONDITION = 9
    ABORTED = 10
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
    Code.ABORTED: 409,
    Code.UNIMPLEMENTED: 501,
    Code.INTERNAL: 500,
    Code.UNAVAILABLE: 503,
}


class RpcError(Exception):
    """A call that is refused.

    Args:
        code: gRPC's.
        message: what went wrong, from the outside in.
        told: what the details tell; none where the gateway itself refuses, which gives no details.
    """

    def __init__(self, code: Code, message: str, told: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.told = told

    def within(self, step: str) -> "RpcError":
        """The same error, in the course of something."""
        return RpcError(self.code, f"{step}: {self.message}", self.told)


def malformed(message: str) -> RpcError:
    """400: the gateway can't read the request."""
    return RpcError(Code.INVALID_ARGUMENT, message)


def invalid(told: str) -> RpcError:
    """400."""
    return RpcError(Code.INVALID_ARGUMENT, f"Invalid input error: {told}", told)


def not_found(kind: str, name: str) -> RpcError:
    """404."""
    told = f"{kind} {name} not found"
    return RpcError(Code.NOT_FOUND, f"ResourceNotFoundError: {told}", told)


def exists(told: str) -> RpcError:
    """409: there is one of that name."""
    return RpcError(Code.ALREADY_EXISTS, f"Already exist error: {told}", told)


def aborted(told: str, why: str) -> RpcError:
    """409: it can't be done to what there is (the server calls it a bad request)."""
    return RpcError(Code.ABORTED, f"BadRequestError: {told}: {why}", told)


def precondition(told: str, why: str) -> RpcError:
    """400: something else has to be done before."""
    return RpcError(Code.FAILED_PRECONDITION, f"FailedPreconditionError: {told}: {why}", told)


def internal(message: str) -> RpcError:
    """500."""
    return RpcError(Code.INTERNAL, f"InternalServerError: {message}", "Internal Server Error")
