"""Errors of the KFP API: gRPC codes with their HTTP statuses, as grpc-gateway maps them, in the API server's words.

The message reports the error from the outside in, as in ``Failed to get a run: Failed to fetch run 7:
ResourceNotFoundError: Run 7 not found``; the details hold only its last part (backend/src/common/util/error.go).
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
        """The HTTP status that grpc-gateway maps the code to."""
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
    """A refused call.

    Args:
        code: gRPC status code.
        message: the error, from the outside in.
        detail: the text of the details; none where the gateway itself refuses, without details.
        complete: the message includes the call that failed.
    """

    def __init__(self, code: Code, message: str, detail: str | None = None, *, complete: bool = False) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.detail = detail
        self.complete = complete

    def within(self, step: str, *, complete: bool = False) -> "RpcError":
        """The same error with the step that it occurred in; `complete` if that is the call."""
        return RpcError(self.code, f"{step}: {self.message}", self.detail, complete=complete)


def malformed(message: str) -> RpcError:
    """400: the gateway cannot parse the request."""
    return RpcError(Code.INVALID_ARGUMENT, message)


def bad_token(why: str) -> RpcError:
    """400: a page token that is not the server's."""
    detail = "Invalid page token"
    return RpcError(Code.INVALID_ARGUMENT, f"InvalidInputError: {detail}: {why}", detail)


def invalid(detail: str) -> RpcError:
    """An error with status 400 for input that the server checks and refuses."""
    return RpcError(Code.INVALID_ARGUMENT, f"Invalid input error: {detail}", detail)


def not_found(kind: str, name: str) -> RpcError:
    """404: no object of that kind has this name."""
    detail = f"{kind} {name} not found"
    return RpcError(Code.NOT_FOUND, f"ResourceNotFoundError: {detail}", detail)


def exists(detail: str) -> RpcError:
    """409: the name is taken."""
    return RpcError(Code.ALREADY_EXISTS, f"Already exist error: {detail}", detail)


def aborted(detail: str, why: str) -> RpcError:
    """409: not possible in the object's state (the server calls it a bad request)."""
    return RpcError(Code.ABORTED, f"BadRequestError: {detail}: {why}", detail)


def precondition(detail: str, why: str) -> RpcError:
    """400: a precondition is not met."""
    return RpcError(Code.FAILED_PRECONDITION, f"FailedPreconditionError: {detail}: {why}", detail)


def internal(message: str) -> RpcError:
    """500: the server's own fault."""
    return RpcError(Code.INTERNAL, f"InternalServerError: {message}", "Internal Server Error")
