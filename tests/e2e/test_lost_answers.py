"""A network that loses answers, between the load and a platform on which the same test ran a minute ago."""

import http.client
import itertools
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

import pytest

from tests.support.e2e import FEW, PIPELINE


class _Relay(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        upstream = http.client.HTTPConnection(self.server.upstream, timeout=30)
        upstream.request(self.command, self.path, body, dict(self.headers))
        answer = upstream.getresponse()
        content = answer.read()
        upstream.close()
        submitted = self.command == "POST" and self.path.endswith("/runs")
        if submitted and self.server.cuts and next(self.server.submitted) % 6 == 0:
            self.close_connection = True  # the run was made
            return
        self.send_response(answer.status)
        for name in ("content-type", "grpc-metadata-content-type"):
            if value := answer.headers.get(name):
                self.send_header(name, value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self):
        self.do_POST()

    def log_message(self, *_):
        pass


@pytest.fixture
def relay(platform):
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Relay)
    server.daemon_threads, server.upstream, server.cuts = True, urlsplit(platform.url).netloc, False
    server.submitted = itertools.count()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_lost_answers_are_found_by_name_although_the_same_test_ran_before(locust, relay, platform):
    def load():
        return locust.headless(
            "--host", f"http://127.0.0.1:{relay.server_port}", "--pipeline", PIPELINE, *FEW,
            "--schedule", "constant", "--rate", "8/s", "--for", "3s", KUBECONFIG=platform.kubeconfig,
        )  # fmt: skip

    assert load().code == 0
    relay.cuts = True
    finished = load()
    report = finished.report()
    lost = [row for row in finished.rows() if row["outcome"] == "rejected"]
    assert len(lost) == 4
    assert {row["status"] for row in lost} == {None}
    assert (report["validity"]["verdict"], report["validity"]["reasons"]) == ("VALID", [])
    assert report["ledger"]["succeeded"] == 24
