"""The load's requests through a proxy that is a process of its own."""

import socket
import ssl
import threading
from urllib.parse import urlsplit

import pytest

from harness.drive.http.client import HttpClient
from harness.model.errors import TargetUnreachableError
from harness.model.http import HttpRequest
from harness.model.plan import Limits
from harness.targets.credentials import Credentials
from tests.support.certificates import certified
from tests.support.http_proxy import http_proxy
from tests.support.servers import Served, until

GET = HttpRequest("GET", "/apis?x=1")
LIMITS = Limits(connect_timeout_s=5.0, answer_timeout_s=5.0)


@pytest.fixture
def served():
    with Served(lambda path, _: (200, path)) as server:
        yield server


def test_tls_goes_through_a_tunnel_whose_connections_are_kept(tmp_path, monkeypatch):
    certificate, key = certified(tmp_path, "kfp.example")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    served = Served(lambda path, _: (200, path))
    served.secure(context)
    with served, http_proxy(urlsplit(served.url).port, "me:secret") as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url.replace("//", "//me:secret@"))
        client = HttpClient("https://kfp.example/pipeline", Credentials("t0ken", authorities=certificate), LIMITS)
        for _ in range(3):
            answer = client(GET)
            assert (answer.status, answer.body) == (200, b"/pipeline/apis")
        until(lambda: proxy.asked, "the proxy says what it was asked for")
        assert proxy.asked == ["CONNECT kfp.example:443 HTTP/1.1"]
        assert served.tokens == ["Bearer t0ken"] * 3
        client.close()


def test_a_plain_request_is_sent_to_the_proxy_with_its_whole_address(served, monkeypatch):
    with http_proxy(urlsplit(served.url).port, "me:secret") as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.replace("//", "//me:secret@"))
        client = HttpClient("http://kfp.example:8080/pipeline", Credentials(), LIMITS)
        assert client(GET).body == b"/pipeline/apis"
        until(lambda: proxy.asked, "the proxy says what it was asked for")
        assert proxy.asked == ["GET http://kfp.example:8080/pipeline/apis?x=1 HTTP/1.1"]


def test_this_machine_and_what_no_proxy_names_are_reached_directly(served, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    assert HttpClient(served.url, Credentials(), LIMITS)(GET).status == 200
    monkeypatch.setenv("NO_PROXY", ".invalid")
    with pytest.raises(TargetUnreachableError) as raised:
        HttpClient("http://kfp.invalid", Credentials(), LIMITS)(GET)
    assert "proxy" not in raised.value.message


def test_a_proxy_that_refuses_is_named_without_its_password(served, monkeypatch):
    with http_proxy(urlsplit(served.url).port, "me:secret") as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url.replace("//", "//me:guessed@"))
        with pytest.raises(TargetUnreachableError) as raised:
            HttpClient("https://kfp.example", Credentials(), LIMITS)(GET)
    assert f"does not answer through the proxy {proxy.url}: the proxy answered 407" in raised.value.message
    assert "guessed" not in str(raised.value)


@pytest.mark.parametrize(
    "answer", [b"", b"SSH-2.0\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\nsurplus", b"HTTP/1.1 200 " + b"x" * 70_000]
)
def test_what_is_no_answer_of_a_proxy_is_told(answer, monkeypatch):
    listener = socket.create_server(("127.0.0.1", 0))

    def serve():
        connection, _ = listener.accept()
        connection.recv(4096)
        connection.sendall(answer)
        connection.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{listener.getsockname()[1]}")
    with pytest.raises(TargetUnreachableError, match=r"the proxy's answer is not HTTP|the proxy sent data|reset"):
        HttpClient("https://kfp.example", Credentials(), LIMITS)(GET)
    thread.join(5)
    listener.close()
