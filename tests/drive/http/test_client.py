"""The HTTP client against real servers on loopback sockets, plain and TLS."""

import gzip
import os
import re
import resource

import gevent
import pytest
from gevent import ssl

from harness.drive.http import client as http_client
from harness.drive.http.client import HttpClient
from harness.model import ConfigError
from harness.model.errors import TargetUnreachableError
from harness.model.http import HttpRequest
from harness.model.plan import Limits
from harness.targets import credentials
from harness.targets.credentials import Credentials
from tests.support.certificates import certified, expired
from tests.support.scripted_server import OK, TIMED_OUT, serve
from tests.support.servers import Served

__all__ = ["serve"]

LIMITS = Limits(connect_timeout_s=20.0, answer_timeout_s=20.0)
POST = HttpRequest("POST", "/runs", b'{"a":1}', {"content-type": "application/json"})


def test_a_request_carries_host_token_prefix_and_length(serve):
    server = serve()
    client = HttpClient(server.url + "/pipeline/", Credentials("secret\n"), LIMITS)
    answer = client(POST)
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    line, *fields = head.decode().split("\r\n")
    assert line == "POST /pipeline/runs HTTP/1.1"
    assert dict(field.lower().split(": ", 1) for field in fields) == {
        "host": server.url.removeprefix("http://"),
        "user-agent": "pipeswarm",
        "accept": "application/json",
        "accept-encoding": "identity",
        "authorization": "bearer secret",
        "content-type": "application/json",
        "content-length": "7",
    }
    assert body == POST.body
    assert (answer.status, answer.body, answer.headers["x-node"]) == (200, b"{}", "n1")


@pytest.mark.parametrize(
    ("method", "length"), [("POST", b"Content-Length: 0"), ("DELETE", b"Content-Length: 0"), ("GET", None)]
)
def test_an_empty_body_has_a_content_length_unless_it_is_a_get(serve, method, length):
    server = serve()
    HttpClient(server.url, Credentials(), LIMITS)(HttpRequest(method, "/"))
    assert (length in server.requests[0]) if length else (b"ontent-" not in server.requests[0])


def test_a_connection_is_reused(serve):
    server = serve()
    client = HttpClient(server.url, Credentials(), LIMITS)
    for _ in range(5):
        client(POST)
    assert (len(server.connections), len(server.requests)) == (1, 5)


def test_concurrent_requests_have_a_connection_each_and_warm_ones_are_open_before(serve):
    server = serve()
    client = HttpClient(server.url, Credentials(), LIMITS)
    client.warm(20, 20.0)
    gevent.sleep(0)
    assert (len(server.connections), server.requests) == (20, [])
    gevent.joinall([gevent.spawn(client, POST) for _ in range(20)])
    assert (len(server.connections), len(server.requests)) == (20, 20)


def test_the_name_is_resolved_once_for_many_connections_and_each_address_is_tried(serve, monkeypatch):
    server, asked = serve(), []
    real = http_client.socket.getaddrinfo

    def addresses(host, port, *more):
        asked.append(host)
        (good, *_) = (each for each in real(host, port, *more) if each[-1][0] == "127.0.0.1")
        return [(*good[:4], ("127.0.0.1", 1)), good]  # the first one refuses

    monkeypatch.setattr(http_client, "_RESOLVE_EVERY_S", 3600.0)
    monkeypatch.setattr(http_client.socket, "getaddrinfo", addresses)
    client = HttpClient(server.url, Credentials(), LIMITS)
    client(POST)
    client.warm(20, 20.0)
    gevent.sleep(0)
    assert asked == ["localhost"]
    assert len(server.connections) == 21


def test_a_name_without_an_address_is_unreachable():
    with pytest.raises(TargetUnreachableError, match="does not answer"):
        HttpClient("http://nowhere.invalid", Credentials(), LIMITS)(POST)


def test_a_host_without_a_scheme_is_said_to_be_read_as_https():
    with pytest.raises(TargetUnreachableError) as refused:
        HttpClient("nowhere.invalid:8888", Credentials(), LIMITS)(POST)
    assert refused.value.hint.endswith("Without a scheme it is read as https://nowhere.invalid:8888")


def test_a_connection_that_the_server_closed_is_not_reused(serve):
    server = serve()
    client = HttpClient(server.url, Credentials(), LIMITS)
    client(POST)
    server.connections[0].close()
    gevent.sleep(0.01)
    assert client(POST).status == 200
    assert (len(server.connections), len(server.requests)) == (2, 2)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (None, "closed"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", r"does not answer: the response is not HTTP \(Expected HTTP"),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Le", "does not answer"),
    ],
)
def test_a_request_without_a_response_is_not_sent_again(serve, answer, message):
    server = serve(OK, answer)
    client = HttpClient(server.url, Credentials(), LIMITS)
    client(POST)
    with pytest.raises(TargetUnreachableError, match=message):
        client(POST)
    assert len(server.requests) == 2
    server.answers = [OK]
    assert client(POST).status == 200, "the next request gets a new connection"


@pytest.mark.attack("Answers and messages of the network")
@pytest.mark.parametrize("surplus", [b"}", OK, TIMED_OUT, b"HTTP/1.1 500 Oops\r\nContent-Length: 3\r\n\r\nbad"])
@pytest.mark.parametrize("later", [False, True])
def test_what_follows_a_response_is_not_the_next_ones(serve, surplus, later):
    server = serve(OK if later else OK + surplus, OK)
    client = HttpClient(server.url, Credentials(), LIMITS)
    first = client(POST)
    if later:
        server.connections[0].sendall(surplus)
        gevent.sleep(0.01)
    second = client(POST)
    assert [(answer.status, answer.body) for answer in (first, second)] == [(200, b"{}")] * 2
    assert len(server.connections) == 2, "the connection with unread bytes was closed"


def test_a_timeout_of_an_idle_connection_is_no_answer_to_the_request_that_crossed_it(serve):
    server = serve(OK, TIMED_OUT, OK)
    client = HttpClient(server.url, Credentials(), LIMITS)
    client(POST)
    assert client(POST).status == 200
    assert len(server.connections) == 2
    server.answers = [TIMED_OUT]
    assert HttpClient(server.url, Credentials(), LIMITS)(POST).status == 408, "on a new connection it is the answer"


def test_an_answer_that_comes_before_the_request_is_complete_is_told(serve):
    server = serve()

    def refuse(connection, _):
        server.connections.append(connection)
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 7\r\n\r\ntoo big")
        connection.shutdown(1)  # and reads no more

    server._server.set_handle(refuse)
    client = HttpClient(server.url, Credentials(), LIMITS)
    for _ in range(2):
        answer = client(HttpRequest("POST", "/upload", b"x" * 20_000_000))
        assert (answer.status, answer.body) == (413, b"too big")
    assert len(server.connections) == 2, "what is left of the request is not sent before the next one"


def packed(body, encoding=b"gzip"):
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: %b\r\nContent-Length: %d\r\n\r\n"
    return head % (encoding, len(body)) + body


def headed(lines, body, version=b"1.1"):
    return b"HTTP/%b 200 OK\r\n%b\r\n\r\n%b" % (version, lines, body)


SERVERS = {
    "HTTP/1.0": (headed(b"Content-Length: 2", b"{}", b"1.0"), b"{}", False),
    "HTTP/1.0 without a length": (headed(b"Server: old", b"{}", b"1.0"), b"{}", False),
    "HTTP/1.0 that keeps connections": (headed(b"Connection: keep-alive\r\nContent-Length: 2", b"{}", b"1.0"), b"{}", True),
    "Connection: close": (headed(b"Connection: close\r\nContent-Length: 2", b"{}"), b"{}", False),
    "Connection: close without a length": (headed(b"connection: close", b"all of it"), b"all of it", False),
    "chunked": (headed(b"Transfer-Encoding: chunked", b'4\r\n{"a"\r\n3\r\n:1}\r\n0\r\n\r\n'), b'{"a":1}', True),
    "chunked with extensions and trailers": (
        headed(b"Transfer-Encoding: chunked\r\nTrailer: X-Sum", b'7;sum=1;n="a b"\r\n{"a":1}\r\n0;last\r\nX-Sum: 9\r\n\r\n'),
        b'{"a":1}', True,
    ),
    "chunked in capitals": (headed(b"TRANSFER-ENCODING: Chunked", b"A\r\n0123456789\r\n0\r\n\r\n"), b"0123456789", True),
    "compressed unasked": (packed(gzip.compress(b'{"a":1}')), b'{"a":1}', True),
    "early hints": (b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + OK, b"{}", True),
    "no content": (b"HTTP/1.1 204 No Content\r\n\r\n", b"", True),
    "empty": (headed(b"Content-Length: 0", b""), b"", True),
}  # fmt: skip


@pytest.mark.parametrize("prefix", ["", "/behind/a/prefix/"])
@pytest.mark.parametrize("at", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("name", SERVERS)
def test_what_servers_answer_comes_out_whole_and_connections_are_kept_where_they_may_be(serve, name, at, prefix):
    answer, body, kept = SERVERS[name]
    server = serve(answer, at=at)
    client = HttpClient(server.url + prefix, Credentials(), LIMITS)
    assert [(client(POST).status // 100, client(POST).body) for _ in range(2)] == [(2, body)] * 2
    assert {line.split(b" ")[1] for line in server.requests} == {f"{prefix.rstrip('/')}/runs".encode()}
    assert len(server.connections) == (1 if kept else 4)


@pytest.mark.attack("Answers and messages of the network")
@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (packed(b"{}"), "damaged gzip"),
        (packed(gzip.compress(b"{}" * 99)[:-9]), "cut off"),
        (packed(gzip.compress(bytes(2**24 + 1), 1)), "longer than 16 MiB"),
        (packed(b"{}", encoding=b"br"), "encoded as 'br'"),
    ],
    ids=["damaged", "cut off", "bomb", "unknown"],
)
def test_an_answer_that_can_not_be_unpacked_is_none(serve, answer, says):
    with pytest.raises(TargetUnreachableError, match=says):
        HttpClient(serve(answer).url, Credentials(), LIMITS)(POST)


def test_a_response_that_never_ends_times_out(serve):
    server = serve(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12")
    with pytest.raises(TargetUnreachableError, match="timed out"):
        HttpClient(server.url, Credentials(), Limits(answer_timeout_s=0.2))(POST)


def test_the_timeout_is_for_the_whole_response_however_often_a_part_of_it_comes(serve):
    server = serve()

    def trickle(connection, _):
        server.connections.append(connection)
        server.read(connection)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")
        for _ in range(100):
            gevent.sleep(0.02)
            connection.sendall(b"x")

    server.serve = trickle
    server._server.set_handle(trickle)
    with pytest.raises(TargetUnreachableError, match="timed out"):
        HttpClient(server.url, Credentials(), Limits(answer_timeout_s=0.2))(POST)


def test_a_refused_connection_is_unreachable(serve):
    server = serve()
    server.stop()
    with pytest.raises(TargetUnreachableError, match="refused"):
        HttpClient(server.url, Credentials(), LIMITS)(POST)
    HttpClient(server.url, Credentials(), LIMITS).warm(3, 20.0)


@pytest.mark.attack("Answers and messages of the network")
@pytest.mark.parametrize(
    "request_",
    [HttpRequest("GET", "/a b"), HttpRequest("GET", "/a\r\nx: y"), HttpRequest("GET", "/", b"", {"a": "b\r\nc: d"})],
)
def test_line_breaks_and_spaces_cannot_be_smuggled_into_the_head(serve, request_):
    server = serve()
    with pytest.raises(ValueError, match=r"not a path|line break"):
        HttpClient(server.url, Credentials(), LIMITS)(request_)
    assert server.connections == []


@pytest.mark.parametrize("host", ["ftp://h", "http://", "http://h:port", "http://[::1", "http://h:99999", ""])
def test_an_invalid_address_is_refused(host):
    with pytest.raises(ConfigError, match="not the address of a platform"):
        HttpClient(host, Credentials(), LIMITS)


def test_credentials_in_an_address_are_refused_because_reports_show_it():
    with pytest.raises(ConfigError, match="contains credentials"):
        HttpClient("https://me:secret@kfp.example", Credentials(), LIMITS)


def test_a_renewed_token_is_used_after_a_401(serve, tmp_path, monkeypatch):
    monkeypatch.setattr(credentials, "_READ_AFTER_REFUSAL_S", 0.0)
    token = tmp_path / "token"
    token.write_text("first")
    refused = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n"
    server = serve(OK, refused, OK)
    client = HttpClient(server.url, Credentials(token_file=str(token), headers=(("kubeflow-userid", "me"),)), LIMITS)
    for _ in range(3):
        client(POST)
        token.write_text("second")
    sent = [re.search(rb"Authorization: Bearer (\w+)", request)[1] for request in server.requests]
    assert sent == [b"first", b"first", b"second"]
    assert all(b"\r\nkubeflow-userid: me\r\n" in request for request in server.requests)


def test_connections_are_reused_beyond_a_thousand_open_files(serve):
    """`select` supports no descriptor above 1,023; a burst of thousands has them."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < 1200:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    server = serve()
    client = HttpClient(server.url, Credentials(), LIMITS)
    spare = [os.dup(0) for _ in range(1100)]
    try:
        for _ in range(3):
            client(POST)
    finally:
        for descriptor in spare:
            os.close(descriptor)
    assert len(server.connections) == 1


def test_https_to_a_server_that_speaks_plain_http_is_told():
    with Served(lambda *_: (200, "")) as server, pytest.raises(TargetUnreachableError) as raised:
        HttpClient(server.url.removeprefix("http://"), Credentials(), LIMITS)(POST)  # without a scheme it is https
    assert "give --host http://" in raised.value.hint


@pytest.mark.attack("Answers and messages of the network")
@pytest.mark.parametrize(
    ("made", "name", "said"),
    [
        (expired, "localhost", r"(?s)certificate has expired.*renew its certificate"),
        (certified, "kfp.example", r"(?s)Hostname mismatch.*give --host as its certificate names it"),
    ],
    ids=["expired", "of another host"],
)
def test_a_certificate_that_may_not_be_trusted_is_told_apart_and_gets_no_token(serve, tmp_path, made, name, said):
    certificate, key = made(tmp_path, name)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = serve(ssl_context=context)
    with pytest.raises(TargetUnreachableError, match=said):
        HttpClient(server.url, Credentials("t0ken", authorities=certificate), LIMITS)(POST)
    assert server.requests == []


def test_over_tls_the_certificate_is_checked_and_warm_connections_are_used(serve, tmp_path, monkeypatch):
    """A TLS 1.3 server sends session tickets after the handshake: the idle connection is readable, and usable."""
    certificate, key = certified(tmp_path, "localhost")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = serve(ssl_context=context)
    with pytest.raises(TargetUnreachableError, match=r"(?s)certificate.*--ca-file.*--insecure"):
        HttpClient(server.url, Credentials(), LIMITS)(POST)
    assert HttpClient(server.url, Credentials(), LIMITS, verify_tls=False)(POST).status == 200
    monkeypatch.setenv("SSL_CERT_FILE", certificate)
    client = HttpClient(server.url, Credentials(), LIMITS)
    client.warm(2, 20.0)
    gevent.sleep(0.05)
    before = len(server.connections)
    assert client(POST).status == client(POST).status == 200
    assert len(server.connections) == before
    for connection in server.connections[-2:]:
        connection.sendall(TIMED_OUT)
    gevent.sleep(0.05)
    assert client(POST).status == 200
    assert len(server.connections) == before + 1, "connections with unread bytes were closed"
