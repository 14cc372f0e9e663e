"""Keeps other sites out of the web UI: a page that a user has open elsewhere can reach it through his browser.

Three rules, each against one attack: the Host header must be an address or a name that we know (DNS rebinding), a
request that changes anything must come from our own page and hold its token (cross-site request forgery), and no answer
may be read or framed by another site (Locust allows every origin to read it).
"""

import hmac
import re
import secrets
import socket
from collections.abc import Callable, Iterable, Mapping
from ipaddress import ip_address
from typing import Any
from urllib.parse import urlsplit

HEADER = "X-Pipeswarm-Token"
_HOST = re.compile(r"(?P<name>\[[^\]]*\]|[^:@/]+)(:\d+)?")
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
_OPENS_TO_OTHERS = "access-control-"
_CLOSING = [
    ("Content-Security-Policy", "frame-ancestors 'none'"),
    ("Cross-Origin-Resource-Policy", "same-origin"),
    ("X-Content-Type-Options", "nosniff"),
]

Start = Callable[..., Any]
Application = Callable[[dict[str, Any], Start], Iterable[bytes]]  # a WSGI application


class Guard:
    """Tells our own page's requests from others'. `names` are ours, besides localhost and this machine's name."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._given = frozenset(map(str.lower, names))
        self._names = self._given | {"localhost", socket.gethostname().lower()}
        self.token = secrets.token_urlsafe()

    def refusal(self, method: str, headers: Mapping[str, str], *, needs_token: bool = True) -> str:
        """Why a request is refused; "" if it isn't.

        Browsers send Origin or Referer with everything that changes anything. Without both it is no page that asks,
        and the token decides.
        """
        host = headers.get("Host", "")
        if not self._knows(host):
            return f"the web UI is not known as '{host}'; start Locust with --web-host-name NAME to use that name"
        if method in _SAFE:
            return ""
        page = headers.get("Origin") or headers.get("Referer")
        if page and not self._is_ours(page, host):
            return "only the page of this web UI may do that, not one from elsewhere"
        if needs_token and not hmac.compare_digest(headers.get(HEADER, "").encode(), self.token.encode()):
            return f"reload the page: Locust was restarted (scripts send its data-token as {HEADER})"
        return ""

    def _knows(self, host: str) -> bool:
        """Whether the host is an address, which no site can own, or a name of ours."""
        parts = _HOST.fullmatch(host)
        if parts is None:
            return False
        name = parts["name"].lower()
        try:
            ip_address(name.strip("[]"))
        except ValueError:
            return name in self._names
        return True

    def _is_ours(self, page: str, host: str) -> bool:
        """Whether the page has our origin. A proxy may have replaced Host; the page then has a name given to us."""
        try:
            parts = urlsplit(page)
        except ValueError:
            return False
        return parts.scheme in {"http", "https"} and (parts.netloc == host or parts.hostname in self._given)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a server bound to `host`."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def closed_to_others(application: Application) -> Application:
    """The application without the headers that open its answers to other sites, and with those that close them."""

    def answer(environ: dict[str, Any], start: Start) -> Iterable[bytes]:
        def start_closed(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
            kept = [header for header in headers if not header[0].lower().startswith(_OPENS_TO_OTHERS)]
            set_already = {name.lower() for name, _ in kept}
            return start(status, [*kept, *(each for each in _CLOSING if each[0].lower() not in set_already)], *more)

        return application(environ, start_closed)

    return answer
