"""Sends requests over gevent sockets: one attempt each, on connections that are kept open.

geventhttpclient's own client builds and checks the same head for every request, which costs more CPU than the rest of a
submission. Here the constant lines are built once; its parser (llhttp) reads the response.
"""

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import SplitResult, urlsplit, urlunsplit

import gevent
import gevent.pool
from gevent import socket, ssl
from geventhttpclient.response import HTTPParseError

from harness.drive.http.exchange import PIECE, exchange, is_quiet
from harness.drive.http.tunnel import open_tunnel
from harness.model.errors import ConfigError, TargetUnreachableError
from harness.model.http import SHORT_ANSWER, HttpAnswer, HttpRequest
from harness.model.plan import Limits
from harness.plan.environment import proxy_for
from harness.plan.unanswered import hint
from harness.targets.credentials import Credentials, HeaderFields

_USER_AGENT = "pipeswarm"
_PORTS = {"http": 80, "https": 443}
_CONNECTING_AT_ONCE = 64
_SYN_REPEATED_S = 0.9  # a SYN without an answer is sent again after a second (RFC 6298)
_RESOLVE_EVERY_S = 1.0  # a name may get another address during a test
_NOT_IN_PATH = re.compile(r"[^\x21-\x7e]")  # RFC 9112, section 3: no space and no control character in a request target
_NOT_IN_HEADER = re.compile(r"[\x00\r\n]")  # RFC 9110, section 5.5: these end a header field


@dataclass(slots=True, eq=False)
class Message:
    """A request as it is sent, made in advance: at its time only the write is left.

    Attributes:
        content: head and body.
        method: of the request.
        connection: on which it was begun, if it was.
        written: bytes that the kernel has taken.
        most_bytes: of the answer.
    """

    content: bytes
    method: str
    connection: "socket.socket | None" = None
    written: int = 0
    most_bytes: int = SHORT_ANSWER


class HttpClient:
    """An `Exchange` with `host`, on as many connections as requests are open at once, through the environment's proxy.

    `prepare_tls` can add an authority or a certificate of the client to the TLS context. `on_slow_connect` is called
    with the seconds that a TCP connection took in which the first SYN got no answer.

    Raises:
        ConfigError: `host` is not an http(s) address, or a file of `credentials` can't be used.
    """

    def __init__(
        self,
        host: str,
        credentials: Credentials,
        limits: Limits,
        *,
        verify_tls: bool = True,
        prepare_tls: Callable[[ssl.SSLContext], None] = lambda _: None,
        on_slow_connect: Callable[[float], None] = lambda _: None,
    ) -> None:
        parts = _address(host)
        self._host = host
        self._prefix = parts.path.rstrip("/")
        self._address = (str(parts.hostname), parts.port or _PORTS[parts.scheme])
        self._proxy = proxy_for(urlunsplit(parts))
        self._peer = (self._proxy.host, self._proxy.port) if self._proxy else self._address
        self._tls = _tls_context(verify=verify_tls) if parts.scheme == "https" else None
        if self._tls is not None:
            credentials.prepare(self._tls)
            prepare_tls(self._tls)
        self._limits = limits
        self._on_slow_connect = on_slow_connect
        self._own_fields = {
            "Host": parts.netloc,
            "User-Agent": _USER_AGENT,
            "Accept": "application/json",
            "Accept-Encoding": "identity",
        }
        if self._proxy and parts.scheme == "http":  # it is sent each request, with the whole address
            self._prefix = f"http://{parts.netloc}{self._prefix}"
            self._own_fields |= self._proxy.headers
        self._proving = HeaderFields(credentials, host, spawn=gevent.spawn)
        self._proof: dict[str, str] | None = None
        self._fields = ""
        self._addresses: list[tuple[int, int, int, str, tuple[Any, ...]]] = []
        self._resolve_at = 0.0
        self._idle: list[socket.socket] = []

    def __call__(self, request: HttpRequest) -> HttpAnswer:
        """Send one request and read the whole response.

        Raises:
            TargetUnreachableError: refused, timed out, closed without a response, or not HTTP.
            ValueError: path or headers contain characters that HTTP forbids: a bug in the target's code.
        """
        return self.finish(self.render(request))

    def render(self, request: HttpRequest) -> Message:
        """Make what is sent, with the present credentials.

        Raises:
            ValueError: as in `__call__`.
        """
        return Message(self._head(request) + request.body, request.method, most_bytes=request.most_bytes)

    def write(self, message: Message) -> None:
        """Hand the message, or its beginning, to the kernel, if there is an idle connection; never waits."""
        connection = self._idle_connection()
        if connection is None:
            return
        connection.settimeout(0.0)
        try:
            message.written = connection.send(message.content[:PIECE])
        except (BlockingIOError, ssl.SSLWantWriteError, ssl.SSLWantReadError):
            pass  # nothing was taken; `finish` waits until it is
        except OSError:
            connection.close()
            return
        finally:
            connection.settimeout(None)
        message.connection = connection

    def finish(self, message: Message) -> HttpAnswer:
        """Send what is left of a message, and read the whole response; raises as `__call__` does."""
        answer = None
        if connection := message.connection or self._idle_connection():
            answer = self._exchange(connection, message.content[message.written :], message)
        # 408 was sent for the idle time, before this request arrived: it may be sent again (RFC 9110, 15.5.9).
        if answer is None or answer.status == HTTPStatus.REQUEST_TIMEOUT:
            answer = self._exchange(None, message.content, message)
        if answer.status == HTTPStatus.UNAUTHORIZED:
            self._proving.refused()
        return answer

    def _exchange(self, connection: "socket.socket | None", content: bytes, message: Message) -> HttpAnswer:
        try:
            connection = connection or self._connect()
            # A timeout of the socket would begin anew with each byte of a response that trickles in.
            with gevent.Timeout(self._limits.answer_timeout_s, TimeoutError("timed out")):
                answer, reusable = exchange(connection, content, message.method, message.most_bytes)
        except (OSError, HTTPParseError) as error:
            if connection is not None:
                connection.close()
            way = f" through the proxy {self._proxy}" if self._proxy else ""
            raise TargetUnreachableError(
                f"{self._host} does not answer{way}: {_describe(error)}", hint(str(error), self._host, self._proxy)
            ) from error
        if reusable:
            self._idle.append(connection)
        else:
            connection.close()
        return answer

    def warm(self, connections: int, within_s: float) -> None:
        """Open `connections` in advance, so that a burst waits for no handshakes; requests report the errors.

        Those that a platform has not accepted in time are given up: the requests open theirs.
        """

        def connect() -> None:
            try:
                self._idle.append(self._connect())
            except OSError:
                return

        group = gevent.pool.Pool(_CONNECTING_AT_ONCE)
        with gevent.Timeout(max(within_s, 0.0), False):  # gevent's way to leave the block quietly
            for _ in range(connections):
                group.spawn(connect)
            group.join()
        group.kill()

    def close(self) -> None:
        """Close all idle connections."""
        while self._idle:
            self._idle.pop().close()

    def _head(self, request: HttpRequest) -> bytes:
        path = self._prefix + request.path
        if _NOT_IN_PATH.search(path):
            raise ValueError(f"not a path: {path!r}")
        length = f"Content-Length: {len(request.body)}\r\n" if request.body or request.method != "GET" else ""
        proof = self._proving.current()
        if proof is not self._proof:
            self._proof, self._fields = proof, _lines({**self._own_fields, **proof})
        head = f"{request.method} {path} HTTP/1.1\r\n{self._fields}{_lines(request.headers)}{length}\r\n"
        return head.encode("latin-1")

    def _idle_connection(self) -> "socket.socket | None":
        """The most recently used connection on which the server has neither hung up nor sent anything."""
        while self._idle:
            connection = self._idle.pop()
            if is_quiet(connection):
                return connection
            connection.close()
        return None

    def _connect(self) -> socket.socket:
        last_error: OSError | None = None
        for family, kind, protocol, _, address in self._resolved():
            connection = socket.socket(family, kind, protocol)
            connection.settimeout(self._limits.connect_timeout_s)
            begun_s = time.monotonic()
            try:
                try:
                    connection.connect(address)
                finally:
                    if (taken_s := time.monotonic() - begun_s) > _SYN_REPEATED_S:
                        self._on_slow_connect(taken_s)
                return self._secure(connection)
            except OSError as error:
                connection.close()
                last_error = error
        raise last_error or OSError("the name has no address")

    def _resolved(self) -> list[tuple[int, int, int, str, tuple[Any, ...]]]:
        """The host's addresses, cached: a thousand connections at once must not mean a thousand lookups in threads."""
        if time.monotonic() >= self._resolve_at:
            self._addresses = socket.getaddrinfo(*self._peer, 0, socket.SOCK_STREAM)
            self._resolve_at = time.monotonic() + _RESOLVE_EVERY_S
        return self._addresses

    def _secure(self, connection: socket.socket) -> socket.socket:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # the end of a long body is sent at once
        if self._tls is not None:
            if self._proxy:
                open_tunnel(connection, self._address, self._proxy.headers, self._limits.connect_timeout_s)
            connection = self._tls.wrap_socket(connection, server_hostname=self._address[0])
        connection.settimeout(None)
        return connection


def _address(host: str) -> SplitResult:
    try:
        parts = urlsplit(host if "://" in host else f"https://{host}")
        if parts.username is not None:  # the manifest and every report show the host
            raise ConfigError(
                "the address of the platform contains credentials", "use a bearer token: see --token-file"
            )
        if parts.scheme in _PORTS and parts.hostname and parts.port != 0:
            return parts
    except ValueError:  # an invalid port or IPv6 address
        pass
    raise ConfigError(f"'{host}' is not the address of a platform", "give --host https://kfp.example/pipeline")


def _describe(error: Exception) -> str:
    if isinstance(error, HTTPParseError):
        return f"the response is not HTTP ({error.args[0]})"
    return str(error) or type(error).__name__


def _tls_context(*, verify: bool) -> ssl.SSLContext:
    """A context of gevent, as the standard one blocks, with the authorities of the system or of ``SSL_CERT_FILE``."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if verify:
        context.load_default_certs()
    else:  # the user said --insecure
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _lines(fields: Mapping[str, str]) -> str:
    for name, value in fields.items():
        if _NOT_IN_HEADER.search(value):
            raise ValueError(f"the header {name} contains a line break or a zero byte")
    return "".join(f"{name}: {value}\r\n" for name, value in fields.items())
