"""Carries requests over gevent sockets: one attempt each, on connections that stay open."""

from urllib.parse import urlsplit

import gevent
import gevent.pool
from geventhttpclient import HTTPClient
from geventhttpclient.response import HTTPParseError

from harness.model.errors import ConfigError, TargetUnreachableError
from harness.model.http import HttpAnswer, HttpRequest
from harness.model.plan import Limits

_USER_AGENT = "pipeswarm"
_CONNECTING_AT_ONCE = 64


class Carrier:
    """An `Exchange` to `host`; `connections` bounds how many are open at once.

    Raises:
        ConfigError: `host` is not an http(s) address.
    """

    def __init__(self, host: str, token: str, limits: Limits, connections: int) -> None:
        parts = urlsplit(host if "://" in host else f"https://{host}")
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ConfigError(f"'{host}' is not the address of a platform", "give --host https://kfp.example/pipeline")
        self._host = host
        self._prefix = parts.path.rstrip("/")
        headers = {"User-Agent": _USER_AGENT, "Accept": "application/json"}
        if token:
            headers["Authorization"] = f"Bearer {token}"
        self._client = HTTPClient.from_url(
            f"{parts.scheme}://{parts.netloc}",
            concurrency=connections,
            connection_timeout=limits.connect_timeout_s,
            network_timeout=limits.answer_timeout_s,
            headers=headers,
        )

    def __call__(self, request: HttpRequest) -> HttpAnswer:
        """Send one request and read its answer whole.

        Raises:
            TargetUnreachableError: refused, timed out, closed without an answer, or not HTTP.
        """
        try:
            response = self._client.request(
                request.method, self._prefix + request.path, body=request.body, headers=request.headers
            )
            body = bytes(response.read())
        except (OSError, HTTPParseError, gevent.Timeout) as error:
            what = str(error) or type(error).__name__
            raise TargetUnreachableError(
                f"{self._host} does not answer: {what}", "is --host right, and the platform up?"
            ) from error
        return HttpAnswer(response.status_code, body, {name.lower(): value for name, value in response.headers})

    def warm(self, connections: int) -> None:
        """Open `connections` in advance, so that a burst does not wait for handshakes. Failures show when sending."""
        pool = self._client._connection_pool  # noqa: SLF001  # the client offers no way to connect ahead
        sockets = []

        def connect() -> None:
            try:
                sockets.append(pool.get_socket())
            except OSError:
                return

        group = gevent.pool.Pool(_CONNECTING_AT_ONCE)
        for _ in range(connections):
            group.spawn(connect)
        group.join()
        for socket in sockets:
            pool.return_socket(socket)

    def close(self) -> None:
        """Close idle connections."""
        self._client.close()
