"""Real servers on the loopback interface that misbehave on demand."""

import json
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

import pytest
import yaml

from harness.model.http import HttpAnswer, HttpRequest
from tests.support.certificates import certified

Answer = tuple[int, Any]  # status, and a document or a list of watch events


@contextmanager
def serving(exchange: Callable[[HttpRequest], HttpAnswer | None], tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """An HTTP server that answers as `exchange` does, or hangs up where that is None; yields its address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            answer = exchange(HttpRequest(self.command, self.path, body, self.headers))
            if answer is None:
                self.close_connection = True
                return
            self.send_response(answer.status)
            for name, text in {**answer.headers, "content-length": str(len(answer.body))}.items():
                self.send_header(name, text)
            self.end_headers()
            self.wfile.write(answer.body)

        do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815  # the standard library's names

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    server.handle_error = lambda *_: None  # a client that hangs up is nothing to be told of
    if tls:
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    try:
        yield f"https://localhost:{server.server_port}" if tls else f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


class Served:
    """An HTTP server that sends what `answer(path, query)` returns and remembers the requests."""

    def __init__(self, answer: Callable[[str, dict[str, str]], Answer]) -> None:
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.tokens: list[str] = []
        served = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                parts = urlsplit(self.path)
                query = dict(parse_qsl(parts.query))
                served.asked.append((parts.path, query))
                served.tokens.append(self.headers.get("Authorization", ""))
                status, document = answer(parts.path, query)
                if "watch" in query and status == 200:
                    self._stream(document)
                else:
                    body = document.encode() if isinstance(document, str) else json.dumps(document).encode()
                    self.send_response(status)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    if self.command != "HEAD":
                        self.wfile.write(body)

            def do_HEAD(self) -> None:
                self.do_GET()

            def do_PUT(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                self.do_GET()

            do_POST = do_DELETE = do_PUT  # noqa: N815  # the standard library's names

            def _stream(self, events: Any) -> None:
                """Send events as chunks and end the watch properly, or, at ``"DROP"``, by closing the connection."""
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                for event in events:
                    if event == "DROP":
                        self.close_connection = True
                        with suppress(OSError):
                            self.connection.shutdown(socket.SHUT_RDWR)
                        return
                    line = json.dumps(event).encode() + b"\n"
                    with suppress(OSError):
                        self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
                        self.wfile.flush()
                with suppress(OSError):
                    self.wfile.write(b"0\r\n\r\n")

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the standard library's name
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def secure(self, context: ssl.SSLContext) -> None:
        """Speak TLS from now on."""
        self._server.socket = context.wrap_socket(self._server.socket, server_side=True)

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def unsigned(folder: Path) -> ssl.SSLContext:
    """What a server speaks TLS with whose certificate nobody has signed; its files are written to `folder`."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certified(folder, "localhost"))
    return context


def kubeconfig(
    path: Path,
    url: str,
    *,
    token: str = "t0ken-of-the-test",
    ca: str | None = None,
    namespace: str = "",
    user: Mapping[str, Any] | None = None,
) -> str:
    """Write a kubeconfig to `path`; returns the path. A `user` takes the place of the token."""
    cluster = {"server": url} | ({"certificate-authority": ca} if ca else {})
    context = {"cluster": "c", "user": "u"} | ({"namespace": namespace} if namespace else {})
    path.write_text(
        yaml.safe_dump(
            {
                "apiVersion": "v1", "kind": "Config", "current-context": "x",
                "clusters": [{"name": "c", "cluster": cluster}],
                "users": [{"name": "u", "user": {"token": token} if user is None else dict(user)}],
                "contexts": [{"name": "x", "context": context}],
            }
        )
    )  # fmt: skip
    return str(path)


class Proxy:
    """A TCP proxy to `port` that can cut its connections, refuse new ones, and hold back what is sent (unless it `flows`)."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._lock = threading.Lock()
        self.refuses = False
        self.flows = threading.Event()
        self.flows.set()
        self.accepted = 0

    def cut(self) -> None:
        """Close every open connection."""
        with self._lock:
            pairs, self._pairs = self._pairs, []
        for pair in pairs:
            for each in pair:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def serve(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            if self.refuses:
                client.close()
                continue
            self.accepted += 1
            server = socket.create_connection(("127.0.0.1", self._to))
            with self._lock:
                self._pairs.append((client, server))
            for one, other in ((client, server), (server, client)):
                threading.Thread(target=_pump, args=(one, other, self.flows), daemon=True).start()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()
        self.flows.set()


def _pump(source: socket.socket, sink: socket.socket, flows: threading.Event) -> None:
    with suppress(OSError):
        while data := source.recv(2**16):
            flows.wait()
            sink.sendall(data)
    for each in (source, sink):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)


@contextmanager
def proxied(port: int) -> Iterator[Proxy]:
    proxy = Proxy(port)
    threading.Thread(target=proxy.serve, daemon=True).start()
    try:
        yield proxy
    finally:
        proxy.close()


def until(true: Callable[[], object], what: str, timeout_s: float = 30.0) -> None:
    """Poll until a condition outside this process is true."""
    pause = threading.Event()
    for _ in range(round(timeout_s / 0.02)):
        if true():
            return
        pause.wait(0.02)
    raise AssertionError(f"not within {timeout_s:g} s: {what}")


@contextmanager
def small_file_system(path: Path, size: str = "1m") -> Iterator[Path]:
    """A file system of the given size; the test is skipped where mounting is not allowed."""
    path.mkdir()
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(path)], check=False)
    if mount.returncode:
        pytest.skip("a small file system can't be mounted here")
    try:
        yield path
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=True)


def fill(path: Path) -> None:
    """Write until the file system is full."""
    with path.open("wb", buffering=0) as out, suppress(OSError):
        while True:
            out.write(b"\0" * 4096)
