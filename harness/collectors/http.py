"""Requests of the observer over urllib3: one attempt each, counted."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit

import urllib3

from harness.model.errors import ConfigError, TargetUnreachableError
from harness.model.http import HttpAnswer, HttpRequest

_USER_AGENT = "pipeswarm-observer"
_ID = re.compile(r"/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")  # requests for different objects share an endpoint


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds to wait for a connection and for a response."""

    connect_s: float
    answer_s: float


class Http:
    """An `Exchange` with `host`.

    Args:
        source: what the requests are counted under.
        host: an http(s) address; https where it names no scheme.
        token: bearer token; "" for none.
        timeouts: of each request.
        count: called with each request's endpoint, ``<source> <method> <path>``.
        verify_tls: check the host's certificate.

    Raises:
        ConfigError: `host` is not an http(s) address.
    """

    def __init__(
        self,
        source: str,
        host: str,
        token: str,
        timeouts: Timeouts,
        *,
        count: Callable[[str], None] = lambda _endpoint: None,
        verify_tls: bool = True,
    ) -> None:
        address = host if "://" in host else f"https://{host}"
        parts = urlsplit(address)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ConfigError(f"'{host}' is not an http(s) address", "write it as https://kfp.example/pipeline")
        self._source = source
        self._address = address.rstrip("/")
        self._count = count
        self._headers = {"User-Agent": _USER_AGENT, "Accept": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._pool = urllib3.PoolManager(
            cert_reqs="CERT_REQUIRED" if verify_tls else "CERT_NONE",
            timeout=urllib3.Timeout(connect=timeouts.connect_s, read=timeouts.answer_s),
            retries=False,
        )
        if not verify_tls:
            urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)

    def __call__(self, request: HttpRequest) -> HttpAnswer:
        """Send one request and read the whole response.

        Raises:
            TargetUnreachableError: refused, timed out, closed without a response, or not HTTP.
        """
        path = _ID.sub("/*", request.path.partition("?")[0])
        self._count(f"{self._source} {request.method} {path}")
        try:
            answer = self._pool.request(
                request.method,
                self._address + request.path,
                body=request.body or None,
                headers={**self._headers, **request.headers},
                redirect=False,
            )
        except urllib3.exceptions.HTTPError as error:
            raise TargetUnreachableError(
                f"{self._address} does not answer: {error}", "check the address, and that the platform is up"
            ) from error
        headers = {name.lower(): value for name, value in answer.headers.items()}
        return HttpAnswer(answer.status, answer.data, headers)
