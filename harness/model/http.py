"""One HTTP exchange as values: targets say what to ask and read the answer, others carry it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request to the target. `path` starts with "/" and carries the query; the carrier adds host and token."""

    method: str
    path: str
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """The answer. Header names are lower case."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


# Carries one request, once. Raises `TargetUnreachableError` when there is no answer.
Exchange = Callable[[HttpRequest], HttpAnswer]
