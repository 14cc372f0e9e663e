"""One HTTP exchange as values: targets make the request and read the response, clients send it."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import unescape

SHORT_ANSWER = 2**24  # bytes of an answer about one object: etcd stores 1.5 MiB of it, gRPC passes on 4
LONG_ANSWER = 2**28  # of a list: 500 of the largest workflows are half of it
LONGER = "the answer is longer than"
_LONGEST_PLACE = 200
_LONGEST_HEAD, _LONGEST_TITLE = 4096, 100
_TITLE = re.compile(rb"<title[^>]*>([^<]*)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A request to the target.

    Attributes:
        path: starts with "/" and includes the query; the client adds host and token.
        most_bytes: of the unpacked answer; a longer one counts as none.
    """

    method: str
    path: str
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)
    most_bytes: int = SHORT_ANSWER


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """The response to it. Header names are lower case."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


def too_long(most_bytes: int) -> str:
    """Why an answer is not read to its end."""
    return f"{LONGER} {most_bytes >> 20} MiB"


def redirection(answer: HttpAnswer) -> str:
    """Where a redirect leads, as text; its query is left out, which may hold a secret. "" of other answers."""
    if answer.status // 100 != 3:
        return ""
    place = answer.headers.get("location", "nowhere").partition("?")[0].partition("#")[0]
    return f"a redirect to {place[:_LONGEST_PLACE]}"


def html_page(body: bytes) -> str:
    """What an HTML page is called in messages, with its title, which mostly says why it came; "" of other bodies."""
    start = body[:_LONGEST_HEAD].lstrip()
    if not start[:20].lower().startswith((b"<!doctype html", b"<html")):
        return ""
    title = _TITLE.search(start)
    text = " ".join(unescape(title[1].decode(errors="replace")).split())[:_LONGEST_TITLE] if title else ""
    return f"an HTML page, “{text}”" if text else "an HTML page"


# Sends one request, once. Raises `TargetUnreachableError` if there is no response.
Exchange = Callable[[HttpRequest], HttpAnswer]
