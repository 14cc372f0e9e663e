"""The part of a kubelet's own API that the API server asks for logs."""

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from tests.support.real_parts.kube import Manifest

_LOGS = "containerLogs"


@contextmanager
def serving_logs(log: Callable[[str], str], certificate: Path, key: Path) -> Iterator[Manifest]:
    """Answer for the logs of all pods; yields the status that leads the API server here from a node."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path).path.strip("/").split("/")
            text = log(parts[2]).encode() if parts[0] == _LOGS else b""
            self.send_response(200 if parts[0] == _LOGS else 404)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the standard library's name
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="kubelet", daemon=True)
    thread.start()
    try:
        yield {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": server.server_port}},
        }
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
