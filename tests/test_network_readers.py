"""Every reader of the network gives up an answer that does not end: a table of all of them, compared with the imports."""

import ast
import contextlib
import socket
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest

from harness.collectors.checkup import cluster
from harness.collectors.collector import ObserverSettings
from harness.collectors.http import Http, Timeouts
from harness.collectors.journal import Journal
from harness.collectors.kubernetes.account import find_service
from harness.collectors.kubernetes.evictions import EvictionApi
from harness.collectors.kubernetes.kube_api import KubeApi, connect
from harness.collectors.kubernetes.node_pools import NodePools
from harness.collectors.metrics.opencost import Allocations, pod_costs
from harness.collectors.metrics.prometheus import PrometheusApi
from harness.collectors.runs.run_watch import HostApi
from harness.collectors.source_health import UnreachableError
from harness.drive.http.client import HttpClient
from harness.drive.http.tunnel import open_tunnel
from harness.in_cluster.running import RunningTest
from harness.model.errors import PipeswarmError
from harness.model.http import LONG_ANSWER, SHORT_ANSWER, HttpRequest
from harness.model.plan import Limits
from harness.store.folder import RunFolder
from harness.targets.credentials import Credentials
from harness.targets.kfp.api import Api
from harness.targets.kube_service import KubeService
from tests.support.answering import serving
from tests.support.servers import kubeconfig

LIMITS = Limits(connect_timeout_s=60.0, answer_timeout_s=60.0)
LINE = SHORT_ANSWER
IN_FLIGHT = 2**25  # in the buffers of both ends
PART = b"x" * 2**20
TEST = SimpleNamespace(namespace="n", name="t", run="r")


def endless(status="200 OK"):
    """Writes an answer of `status` without an end, until the reader hangs up; counts its bytes."""

    async def converse(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 1000000000000\r\n\r\n".encode())
            while True:
                service.written += len(PART)
                writer.write(PART)
                await writer.drain()

    service = SimpleNamespace(url="", written=0)
    return service, serving(service, converse)


def load(url):
    return HttpClient(url, Credentials(), LIMITS)


def observer(url):
    return Http("test", url, Credentials(), Timeouts(60.0, 60.0))


def kube(kind):
    def opened(url, folder):
        settings = ObserverSettings(host=url, kubeconfig=kubeconfig(folder / "config", url))
        return kind(settings, Journal(RunFolder(folder).recorder()))

    return opened


def official(url, folder):
    return connect(kubeconfig=kubeconfig(folder / "config", url))[0]


def tunnelled(url):
    parts = urlsplit(url)
    with socket.create_connection((parts.hostname, parts.port), 60.0) as connection:
        open_tunnel(connection, ("kfp", 443), {}, 60.0)


def running(url, folder):
    test = RunningTest(official(url, folder), TEST)
    test._pod = "p"
    return test


def checked_up(url, folder):
    found, _ = cluster(ObserverSettings(host="", kubeconfig=kubeconfig(folder / "config", url)))
    raise UnreachableError(found[0].found)


READERS = {
    "a health check of the load": (SHORT_ANSWER, lambda url, _: Api(load(url)).healthz("")),
    "a submission of the load": (SHORT_ANSWER, lambda url, _: load(url)(HttpRequest("POST", "/runs", b"{}"))),
    "a listing of the load": (LONG_ANSWER, lambda url, _: Api(load(url)).get("/runs")),
    "a health check of the observer": (SHORT_ANSWER, lambda url, _: Api(observer(url)).healthz("")),
    "a listing of the observer": (LONG_ANSWER, lambda url, _: Api(observer(url)).get("/runs")),
    "the past of a store": (2**26, lambda url, _: PrometheusApi(observer(url)).names(0, 1)),
    "the costs of an OpenCost": (
        2**26,
        lambda url, _: pod_costs(observer(url), *Allocations("opencost", "", 0, 1).request),
    ),
    "an object of the cluster": (LONG_ANSWER, lambda url, folder: kube(KubeApi)(url, folder).get("/api")),
    "a log of the cluster": (LONG_ANSWER, lambda url, folder: kube(KubeApi)(url, folder).get_text("/log", {})),
    "a watch of the cluster": (LINE, lambda url, folder: list(kube(KubeApi)(url, folder).watch("/pods", {}))),
    "a listing of runs as objects": (LONG_ANSWER, lambda url, folder: kube(HostApi)(url, folder).get("/workflows")),
    "the nodes of a pool": (LONG_ANSWER, lambda url, folder: NodePools().nodes()),
    "the nodes to evict": (LONG_ANSWER, lambda url, folder: EvictionApi().nodes("a")),
    "a service of the cluster": (
        LONG_ANSWER,
        lambda url, folder: find_service(official(url, folder), KubeService.parse("kube://n/s:80")),
    ),
    "the doctor": (LONG_ANSWER, checked_up),
    "the state of a test in the cluster": (LONG_ANSWER, lambda url, folder: running(url, folder).state()),
    "the log of a test in the cluster": (LINE, lambda url, folder: running(url, folder).pass_on_log(print)),
    "the end of a test in the cluster": (LONG_ANSWER, lambda url, folder: running(url, folder).remove()),
    "a tunnel through a proxy": (0, lambda url, _: tunnelled(url)),
}
REFUSALS = {
    "a listing of the observer",
    "an object of the cluster",
    "the nodes to evict",
    "the end of a test in the cluster",
}
# Modules that import a means to read the network, each with the reader above that goes through it, or why none does.
MODULES = {
    "harness/collectors/checkup.py": "the doctor",
    "harness/collectors/http.py": "a listing of the observer",
    "harness/collectors/kubernetes/account.py": "a service of the cluster",
    "harness/collectors/kubernetes/kube_api.py": "an object of the cluster",
    "harness/collectors/runs/callbacks.py": "reads as much as the request says, of at most 256 MiB",
    "harness/collectors/runs/run_watch.py": "a listing of runs as objects",
    "harness/drive/dispatch/bare_loop.py": "talks to itself",
    "harness/drive/workers/secret.py": "messages of workers, see tests/drive/test_worker_messages.py",
    "harness/drive/http/client.py": "a submission of the load",
    "harness/drive/http/exchange.py": "a listing of the load",
    "harness/drive/http/tunnel.py": "a tunnel through a proxy",
    "harness/drive/web/guard.py": "names for addresses",
    "harness/in_cluster/running.py": "the state of a test in the cluster",
    "harness/plan/whole_answer.py": "a log of the cluster",
    "harness/targets/credentials.py": "makes a request to find its header fields, and sends none",
    "harness/targets/hetida/__init__.py": "finds a free port",
}
NETWORK = {
    "urllib3",
    "kubernetes",
    "socket",
    "http",
    "websocket",
    "geventhttpclient",
    "urllib.request",
    "requests",
    "zmq",
}


@pytest.mark.parametrize(
    ("reader", "status"),
    [(each, "200 OK") for each in READERS] + [(each, "403 Forbidden") for each in sorted(REFUSALS)],
)
def test_an_answer_without_an_end_is_given_up(reader, status, tmp_path, monkeypatch):
    most, read = READERS[reader]
    service, served = endless(status)
    with served:
        monkeypatch.setenv("KUBECONFIG", kubeconfig(tmp_path / "of-variable", service.url))
        with pytest.raises((PipeswarmError, UnreachableError, OSError)):
            read(service.url, tmp_path)
    assert service.written <= most + IN_FLIGHT


def test_the_table_has_every_module_that_reads_the_network():
    def imports(tree):
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                yield from (each.name for each in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module:
                yield from (f"{node.module}.{each.name}" for each in node.names)

    def networked(name):
        return any(f"{name}.".startswith(f"{each}.") or f"{name}.".startswith(f"gevent.{each}.") for each in NETWORK)

    product = [path for room in ("harness", "pipeswarm", "generators", "reports") for path in Path(room).rglob("*.py")]
    found = {
        str(path)
        for path in product
        if "simulator" not in path.parts and any(map(networked, imports(ast.parse(path.read_text()))))
    }
    assert found == set(MODULES)
