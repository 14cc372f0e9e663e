"""Requests that are made first and written later: the server gets each of them whole and once."""

import gevent
import pytest
from gevent import ssl

from harness.drive.http.client import HttpClient
from harness.model.errors import TargetUnreachableError
from harness.model.http import HttpRequest
from harness.model.plan import Limits
from harness.targets.credentials import Credentials
from tests.support.certificates import certified
from tests.support.scripted_server import OK, TIMED_OUT, serve

__all__ = ["serve"]

LIMITS = Limits(connect_timeout_s=20.0, answer_timeout_s=20.0)
POST = HttpRequest("POST", "/runs", b'{"a":1}')
LARGE = HttpRequest("POST", "/runs", bytes(range(256)) * 2**16)  # 16 MiB: no socket takes it at once


@pytest.fixture(params=["plain", "tls"])
def place(request, serve, tmp_path, monkeypatch):
    """A server, and a client with a connection that is open and idle."""
    if request.param == "tls":
        certificate, key = certified(tmp_path, "localhost")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        monkeypatch.setenv("SSL_CERT_FILE", certificate)
        server = serve(ssl_context=context)
    else:
        server = serve()
    client = HttpClient(server.url, Credentials(), LIMITS)
    client.warm(1, 20.0)
    gevent.sleep(0.05)
    return server, client


@pytest.mark.parametrize("request_", [POST, LARGE])
def test_what_was_written_is_completed_and_answered(place, request_):
    server, client = place
    message = client.render(request_)
    assert not server.requests
    client.write(message)
    assert 0 < message.written <= len(message.content)
    assert client.finish(message).body == b"{}"
    (received,) = server.requests
    assert received.partition(b"\r\n\r\n")[2] == request_.body
    assert len(server.connections) == 1


def test_a_short_request_arrives_without_being_finished(place):
    server, client = place
    client.write(client.render(POST))
    with gevent.Timeout(20):
        while not server.requests:
            gevent.sleep(0.01)


def test_two_that_are_written_at_once_have_a_connection_each(place):
    server, client = place
    client.warm(1, 20.0)
    messages = [client.render(HttpRequest("POST", f"/{k}", b"{}")) for k in range(3)]
    for message in messages:
        client.write(message)
    assert messages[2].connection is None  # no connection was idle: it waits for one, or opens one
    assert [client.finish(message).status for message in messages] == [200] * 3
    assert sorted(each.split()[1] for each in server.requests) == [b"/0", b"/1", b"/2"]
    assert len(server.connections) == 2


def test_a_connection_that_the_server_closed_is_replaced(place):
    server, client = place
    message = client.render(POST)
    server.connections[0].close()
    gevent.sleep(0.05)
    client.write(message)
    assert client.finish(message).status == 200
    assert len(server.requests) == 1


def test_a_timeout_of_the_idle_connection_is_no_answer(serve):
    server = serve(TIMED_OUT, OK)
    client = HttpClient(server.url, Credentials(), LIMITS)
    client.warm(1, 20.0)
    message = client.render(POST)
    client.write(message)
    assert client.finish(message).status == 200
    assert [each.partition(b"\r\n\r\n")[2] for each in server.requests] == [POST.body] * 2


def test_what_was_written_and_never_answered_is_not_sent_again(serve):
    server = serve(None)
    client = HttpClient(server.url, Credentials(), LIMITS)
    client.warm(1, 20.0)
    message = client.render(POST)
    client.write(message)
    with pytest.raises(TargetUnreachableError):
        client.finish(message)
    assert len(server.requests) == 1
