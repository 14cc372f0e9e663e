"""The page of --serve-metrics: readable by Prometheus on this machine, and by no other site."""

import socket

import gevent
import pytest

from harness.drive.web import metrics_page
from harness.drive.web.guard import Guard
from harness.model.errors import ConfigError


@pytest.fixture
def server():
    started = metrics_page.serve("127.0.0.1", 0, lambda: "pipeswarm_runs_in_flight 3\n", Guard())
    yield started
    started.stop()


@pytest.mark.parametrize(
    ("line", "host", "status", "text"),
    [("GET /metrics", "127.0.0.1", 200, "pipeswarm_runs_in_flight 3\n"), ("HEAD /metrics", "localhost:1", 200, ""),
     ("GET /metrics", "evil.example", 403, "not known as"), ("POST /metrics", "127.0.0.1", 405, "only be read"),
     ("GET /swarm", "127.0.0.1", 404, "/metrics")],
)  # fmt: skip
def test_it_serves_the_metrics_and_nothing_else(server, line, host, status, text):
    with gevent.socket.create_connection(("127.0.0.1", server.server_port), 5) as raw:
        raw.sendall(f"{line} HTTP/1.0\r\nHost: {host}\r\n\r\n".encode())
        answer = b"".join(iter(lambda: raw.recv(65536), b"")).decode()
    head, _, body = answer.partition("\r\n\r\n")
    assert head.split()[1] == str(status)
    assert text in body
    assert bool(body) == bool(text)
    assert "cross-origin-resource-policy: same-origin" in head.lower()


def test_a_port_in_use_is_an_error_that_names_the_option():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"--serve-metrics: can't listen on 127.0.0.1:{port}"):
            metrics_page.serve("127.0.0.1", port, str, Guard())
