"""The observer's requests: answers that never end or are cut off, and a proxy that is a process of its own."""

import asyncio
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest

from harness.collectors.collector import ObserverSettings
from harness.collectors.http import Http, Timeouts
from harness.collectors.journal import Journal
from harness.collectors.kubernetes.kube_api import KubeApi
from harness.collectors.source_health import UnreachableError
from harness.model.errors import TargetUnreachableError
from harness.model.http import HttpRequest
from harness.store.folder import RunFolder
from harness.targets.credentials import Credentials
from tests.support.answering import answering, serving
from tests.support.http_proxy import http_proxy
from tests.support.servers import Served, kubeconfig, until

TIMEOUTS = Timeouts(5.0, 5.0)


@pytest.fixture
def proxy(monkeypatch):
    with (
        Served(lambda path, _: (200, {"path": path})) as server,
        http_proxy(urlsplit(server.url).port, "me:secret") as running,
    ):
        monkeypatch.setenv("HTTP_PROXY", running.url.replace("//", "//me:secret@"))
        yield running


def test_platform_and_cluster_are_reached_through_the_proxy(proxy, tmp_path):
    answer = Http("test", "http://kfp.example", Credentials(), TIMEOUTS)(HttpRequest("GET", "/apis"))
    assert answer.body == b'{"path": "/apis"}'
    config = kubeconfig(tmp_path / "config", "http://cluster.example")
    with RunFolder(tmp_path).recorder() as recorder:
        api = KubeApi(ObserverSettings(host="", kubeconfig=config), Journal(recorder))
        assert api.get("/version") == {"path": "/version"}
    until(lambda: len(proxy.asked) == 2, "the proxy says what it was asked for")
    assert proxy.asked == ["GET http://kfp.example/apis HTTP/1.1", "GET http://cluster.example/version HTTP/1.1"]


def test_this_machine_is_reached_directly(proxy):
    with Served(lambda _path, _query: (200, {})) as server:
        assert Http("test", server.url, Credentials(), TIMEOUTS)(HttpRequest("GET", "/")).status == 200
    assert not proxy.asked


def test_a_proxy_that_does_not_answer_is_named_without_its_password(monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://me:secret@127.0.0.1:9")
    with pytest.raises(
        TargetUnreachableError, match=r"does not answer through the proxy http://127\.0\.0\.1:9"
    ) as raised:
        Http("test", "https://kfp.example", Credentials(), TIMEOUTS)(HttpRequest("GET", "/"))
    assert "secret" not in str(raised.value)


OK = b"HTTP/1.1 200 OK\r\n"


async def _by_the_byte(writer):
    writer.write(OK + b"Content-Length: 1000\r\n\r\n")
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.01)


async def _cut_off(writer):
    writer.write(OK + b"Content-Length: 1000\r\n\r\n{}")
    writer.close()


@pytest.fixture(params=[_by_the_byte, _cut_off])
def endless(request):
    """A server whose answer does not end as it should."""
    service = SimpleNamespace(url="")

    async def converse(reader, writer):
        try:
            await reader.readuntil(b"\r\n\r\n")
            await request.param(writer)
        except ConnectionError:
            pass  # it was hung up on

    with serving(service, converse):
        yield service.url


def test_an_answer_that_trickles_in_or_is_cut_off_is_given_up(endless, tmp_path):
    brief = 0.2
    with pytest.raises(TargetUnreachableError):
        Http("test", endless, Credentials(), Timeouts(5.0, brief))(HttpRequest("GET", "/"))
    with RunFolder(tmp_path).recorder() as recorder:
        config = kubeconfig(tmp_path / "config", endless)
        api = KubeApi(ObserverSettings(host="", kubeconfig=config, answer_timeout_s=brief), Journal(recorder))
        with pytest.raises(UnreachableError):
            api.get("/version")
        with pytest.raises(UnreachableError):
            api.get_text("/log", {})


def test_a_connection_is_used_again():
    with answering(0.0) as service:
        http = Http("test", service.url, Credentials(), TIMEOUTS)
        for _ in range(3):
            assert http(HttpRequest("POST", "/", b"{}")).status == 200
    (of_one_connection,) = service.answered.values()
    assert len(of_one_connection) == 3
