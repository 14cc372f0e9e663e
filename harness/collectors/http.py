"""Requests of the observer over urllib3: one attempt each, counted."""

import re
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from urllib.parse import urlsplit

import urllib3

from harness.model.errors import ConfigError, TargetUnreachableError
from harness.model.http import HttpAnswer, HttpRequest
from harness.plan.environment import proxy_for
from harness.plan.http_proxy import Proxy
from harness.plan.unanswered import hint
from harness.plan.whole_answer import read_whole
from harness.targets.credentials import Credentials, HeaderFields

_USER_AGENT = "pipeswarm-observer"
_ID = re.compile(r"/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")  # requests for different objects share an endpoint


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds to wait for a connection, and for the next byte of an answer."""

    connect_s: float
    answer_s: float


class Http:
    """An `Exchange` with `host`, through the environment's proxy for it.

    Args:
        source: what the requests are counted under.
        host: an http(s) address; https where it names no scheme.
        credentials: for this host.
        timeouts: of each request.
        count: called with each request's endpoint, ``<source> <method> <path>``.
        verify_tls: check the host's certificate.
        prepare_tls: can add an authority or a certificate of the client to the TLS context.

    Raises:
        ConfigError: `host` is not an http(s) address, or a file of `credentials` can't be used.
    """

    def __init__(
        self,
        source: str,
        host: str,
        credentials: Credentials,
        timeouts: Timeouts,
        *,
        count: Callable[[str], None] = lambda _endpoint: None,
        verify_tls: bool = True,
        prepare_tls: Callable[[ssl.SSLContext], None] = lambda _: None,
    ) -> None:
        address = host if "://" in host else f"https://{host}"
        parts = urlsplit(address)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ConfigError(f"'{host}' is not an http(s) address", "write it as https://kfp.example/pipeline")
        self._source = source
        self._answer_s = timeouts.answer_s
        self._address = address.rstrip("/")
        self._count = count
        self._headers = {"User-Agent": _USER_AGENT, "Accept": "application/json", "Accept-Encoding": "gzip"}
        self._proving = HeaderFields(credentials, address)
        context = urllib3.util.ssl_.create_urllib3_context(cert_reqs=ssl.CERT_REQUIRED if verify_tls else ssl.CERT_NONE)
        if verify_tls:
            context.load_default_certs()
        credentials.prepare(context)
        prepare_tls(context)
        self._proxy = proxy_for(address)
        self._pool = _pool(self._proxy)(
            ssl_context=context,
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
                headers={**self._headers, **self._proving.current(), **request.headers},
                redirect=False,
                preload_content=False,
            )
            body = read_whole(answer, self._answer_s, request.most_bytes)
        except urllib3.exceptions.HTTPError as error:
            way = f" through the proxy {self._proxy}" if self._proxy else ""
            raise TargetUnreachableError(
                f"{self._address} does not answer{way}: {error}", hint(str(error), self._address, self._proxy)
            ) from error
        if answer.status == HTTPStatus.UNAUTHORIZED:
            self._proving.refused()
        headers = {name.lower(): value for name, value in answer.headers.items()}
        return HttpAnswer(answer.status, body, headers)


def _pool(proxy: Proxy | None) -> Callable[..., urllib3.PoolManager]:
    if proxy is None:
        return urllib3.PoolManager
    return partial(urllib3.ProxyManager, str(proxy), proxy_headers=proxy.headers)
