"""One HTTP exchange as values: targets make the request and read the response, clients send it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request to the target. `path` starts with "/" and includes the query; the client adds host and token."""

    method: str
    path: str
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """The response to it. Header names are lower case."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


# Sends one request, once. Raises `TargetUnreachableError` if there is no response.
Exchange = Callable[[HttpRequest], HttpAnswer]
