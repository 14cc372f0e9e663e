"""An API server as far as its service proxy: what it passes on is answered by an exchange."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from harness.model.http import Exchange, HttpAnswer, HttpRequest
from harness.plan.kubeconfig import Access

TOKEN = "of-the-kubeconfig"


@contextmanager
def service_proxy(proxied: str, exchange: Exchange) -> Iterator[Access]:
    """Serve `exchange` below the path `proxied`, to requests with the right token; everything else is not found."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            known = self.path.startswith(proxied) and self.headers["Authorization"] == f"Bearer {TOKEN}"
            asked = HttpRequest(self.command, self.path.removeprefix(proxied), body)
            answer = exchange(asked) if known else HttpAnswer(404, b"404 page not found")
            self.send_response(answer.status)
            for name, text in {**answer.headers, "content-length": str(len(answer.body))}.items():
                self.send_header(name, text)
            self.end_headers()
            self.wfile.write(answer.body)

        do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815  # the standard library's names

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    yield Access(f"http://127.0.0.1:{server.server_port}", "", TOKEN, "", "", "")
    server.shutdown()
    server.server_close()
    thread.join(5)
