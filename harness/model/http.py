"""One HTTP exchange as values: targets make the request and read the response, clients send it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

_LONGEST_PLACE = 200


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


def redirection(answer: HttpAnswer) -> str:
    """Where a redirect leads, as text; its query is left out, which may hold a secret. "" of other answers."""
    if answer.status // 100 != 3:
        return ""
    place = answer.headers.get("location", "nowhere").partition("?")[0].partition("#")[0]
    return f"a redirect to {place[:_LONGEST_PLACE]}"


# Sends one request, once. Raises `TargetUnreachableError` if there is no response.
Exchange = Callable[[HttpRequest], HttpAnswer]
