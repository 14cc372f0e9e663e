"""Carries requests over gevent sockets: one attempt each, on connections that stay open.

The general client of geventhttpclient builds and checks the same head for every request, which costs more CPU than all
the rest of a submission. Here the lines that never change are made once; the answer is read by its parser (llhttp).
"""

import re
import select
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import SplitResult, urlsplit

import gevent
import gevent.pool
from gevent import monkey, socket, ssl
from geventhttpclient.response import HTTPParseError, HTTPSocketResponse

from harness.model.errors import ConfigError, TargetUnreachableError
from harness.model.http import HttpAnswer, HttpRequest
from harness.model.plan import Limits

_USER_AGENT = "pipeswarm"
_PORTS = {"http": 80, "https": 443}
_CONNECTING_AT_ONCE = 64
_ASK_EVERY_S = 1.0  # a name may get another address while a test goes
_PIECE = 16 * 1024  # bytes read at once: a listing, or a result with its data, is long
_NO_PATH = re.compile(r"[^\x21-\x7e]")  # RFC 9112, section 3: a request target holds no space and no control character
_NO_VALUE = re.compile(r"[\x00\r\n]")  # RFC 9110, section 5.5: these would end a header field
# The server has closed an idle connection. That one is readable says too little: of TLS it may be a session ticket.
_CLOSED = getattr(select, "POLLRDHUP", select.POLLIN)
_poll = monkey.get_original("select", "poll")  # asked without waiting; the version that Locust patches in gives way


class HttpClient:
    """An `Exchange` to `host`. There are as many connections as requests were open at once.

    Raises:
        ConfigError: `host` is not an http(s) address, or `token` can't be sent.
    """

    def __init__(self, host: str, token: str, limits: Limits, *, verify_tls: bool = True) -> None:
        parts = _address(host)
        self._host = host
        self._prefix = parts.path.rstrip("/")
        self._address = (parts.hostname, parts.port or _PORTS[parts.scheme])
        self._tls = _trust(verify=verify_tls) if parts.scheme == "https" else None
        self._limits = limits
        fields = {"Host": parts.netloc, "User-Agent": _USER_AGENT, "Accept": "application/json"}
        if token:
            fields["Authorization"] = f"Bearer {token.strip()}"
        try:
            self._fields = _lines(fields)
        except ValueError as error:
            raise ConfigError(str(error), "a bearer token is one line") from None
        self._addresses: list[tuple[int, int, int, str, tuple[Any, ...]]] = []
        self._ask_at = 0.0
        self._idle: list[socket.socket] = []

    def __call__(self, request: HttpRequest) -> HttpAnswer:
        """Send one request and read its answer whole.

        Raises:
            TargetUnreachableError: refused, timed out, closed without an answer, or not HTTP.
            ValueError: path or headers hold what HTTP does not allow there; a defect of the target's code.
        """
        message = self._head(request) + request.body
        connection = None
        try:
            connection = self._idle_connection() or self._connect()
            connection.sendall(message)
            response = HTTPSocketResponse(connection, _PIECE, method=request.method)
            body = response.read()
        except (OSError, HTTPParseError) as error:
            if connection is not None:
                connection.close()
            raise TargetUnreachableError(f"{self._host} does not answer: {_what(error)}", _hint(error)) from error
        if response.should_close():
            connection.close()
        else:
            self._idle.append(connection)
        return HttpAnswer(response.status_code, body, {name.lower(): value for name, value in response.headers})

    def warm(self, connections: int) -> None:
        """Open `connections` in advance, so that a burst does not wait for handshakes. Failures show when sending."""

        def connect() -> None:
            try:
                self._idle.append(self._connect())
            except OSError:
                return

        group = gevent.pool.Pool(_CONNECTING_AT_ONCE)
        for _ in range(connections):
            group.spawn(connect)
        group.join()

    def close(self) -> None:
        """Close idle connections."""
        while self._idle:
            self._idle.pop().close()

    def _head(self, request: HttpRequest) -> bytes:
        path = self._prefix + request.path
        if _NO_PATH.search(path):
            raise ValueError(f"not a path: {path!r}")
        length = f"Content-Length: {len(request.body)}\r\n" if request.body or request.method != "GET" else ""
        head = f"{request.method} {path} HTTP/1.1\r\n{self._fields}{_lines(request.headers)}{length}\r\n"
        return head.encode("latin-1")

    def _idle_connection(self) -> "socket.socket | None":
        """The connection that was used last, so that unneeded ones stay idle; not one that the server has closed."""
        while self._idle:
            connection = self._idle.pop()
            poll = _poll()
            poll.register(connection, _CLOSED)
            if not poll.poll(0):
                return connection
            connection.close()
        return None

    def _connect(self) -> socket.socket:
        refused: OSError | None = None
        for family, kind, protocol, _, address in self._resolved():
            connection = socket.socket(family, kind, protocol)
            connection.settimeout(self._limits.connect_timeout_s)
            try:
                connection.connect(address)
                return self._secured(connection)
            except OSError as error:
                connection.close()
                refused = error
        raise refused or OSError("the name has no address")

    def _resolved(self) -> list[tuple[int, int, int, str, tuple[Any, ...]]]:
        """Where the host is now. A thousand connections at once don't ask a thousand times, with a thread for each."""
        if time.monotonic() >= self._ask_at:
            self._addresses = socket.getaddrinfo(*self._address, 0, socket.SOCK_STREAM)
            self._ask_at = time.monotonic() + _ASK_EVERY_S
        return self._addresses

    def _secured(self, connection: socket.socket) -> socket.socket:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # the end of a long body waits for nothing
        if self._tls is not None:
            connection = self._tls.wrap_socket(connection, server_hostname=self._address[0])
        connection.settimeout(self._limits.answer_timeout_s)
        return connection


def _address(host: str) -> SplitResult:
    try:
        parts = urlsplit(host if "://" in host else f"https://{host}")
        if parts.username is not None:  # the manifest, and every report, names the host
            raise ConfigError("the address of the platform holds credentials", "give a bearer token: see --token-file")
        if parts.scheme in _PORTS and parts.hostname and parts.port != 0:
            return parts
    except ValueError:  # no port, no IPv6 address
        pass
    raise ConfigError(f"'{host}' is not the address of a platform", "give --host https://kfp.example/pipeline")


def _what(error: Exception) -> str:
    if isinstance(error, HTTPParseError):
        return f"what it says is not HTTP ({error.args[0]})"
    return str(error) or type(error).__name__


def _hint(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return "name the file of its authority in SSL_CERT_FILE, or check no certificate with --insecure"
    return "is --host right, and the platform up?"


def _trust(*, verify: bool) -> ssl.SSLContext:
    """The system's certificate authorities, or those of ``SSL_CERT_FILE``; the standard context's sockets block."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if verify:
        context.load_default_certs()
    else:  # the user said --insecure
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _lines(fields: Mapping[str, str]) -> str:
    for name, value in fields.items():
        if _NO_VALUE.search(value):
            raise ValueError(f"the header {name} holds what it can't: a line break or a zero byte")
    return "".join(f"{name}: {value}\r\n" for name, value in fields.items())
