"""Paths: what the API answers itself, what it leaves to the services beside it, and what it says of itself."""

import asyncio
import json
from typing import Any

import pytest
import urllib3
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from harness.simulator.kube_api.routes import mount
from tests.support.kube_cluster import Cluster, Server, pod

http = urllib3.PoolManager(retries=False, timeout=20.0)


def _status(server: Server, method: str, path: str, **options: Any) -> dict[str, Any]:
    answer = http.request(method, server.url + path, **options)
    body: dict[str, Any] = json.loads(answer.data)
    assert body["kind"] == "Status"
    assert body["code"] == answer.status
    return body


@pytest.mark.parametrize(
    ("request_line", "code", "reason", "message"),
    [
        ("GET /api/v1/namespaces/default/pods/x", 404, "NotFound", 'pods "x" not found'),
        ("GET /apis/apps/v1/namespaces/a/deployments/x", 404, "NotFound", 'deployments.apps "x" not found'),
        ("DELETE /api/v1/nodes/x", 404, "NotFound", 'nodes "x" not found'),
        ("GET /api/v1/foos", 404, "NotFound", "the server could not find the requested resource"),
        ("GET /openapi/v3/apis/none/v1", 404, "NotFound", "the server could not find the requested resource"),
        ("POST /api/v1/nodes", 403, "Forbidden", "the simulated platform can't create nodes for clients"),
        ("DELETE /apis/metrics.k8s.io/v1beta1/nodes/node-0", 405, "MethodNotAllowed", "the server does not allow"),
        ("GET /api/v1/pods?fieldSelector=a%3Db", 400, "BadRequest", "field label not supported: a"),
        ("GET /api/v1/pods?resourceVersion=99999", 504, "Timeout", "Too large resource version: 99999, current: "),
    ],
)
def test_a_refusal_is_a_status(server: Server, request_line: str, code: int, reason: str, message: str) -> None:
    status = _status(server, *request_line.split(" "))
    assert (status["code"], status["reason"]) == (code, reason)
    assert message in status["message"]


def test_an_unknown_group_is_answered_with_plain_text(server: Server) -> None:
    answer = http.request("GET", f"{server.url}/apis/none/v1")
    assert (answer.status, answer.data) == (404, b"404 page not found\n")


def test_bodies_that_make_no_sense_are_refused(server: Server) -> None:
    path = "/api/v1/namespaces/default/pods/p0"
    merge = {"Content-Type": "application/merge-patch+json"}
    assert _status(server, "PATCH", path, body=b"{bad", headers=merge)["code"] == 400
    assert _status(server, "PATCH", path, body=b"[]", headers=merge)["code"] == 400
    assert _status(server, "PATCH", path, body=b"{}", headers={"Content-Type": "text/plain"})["code"] == 415
    protobuf = {"Content-Type": "application/vnd.kubernetes.protobuf"}  # as of kubectl create configmap
    refusal = _status(server, "POST", path.rpartition("/")[0], body=b"k8s\0", headers=protobuf)
    assert (refusal["code"], refusal["reason"]) == (415, "UnsupportedMediaType")
    assert _status(server, "DELETE", path, body=b"[]", headers={"Content-Type": "application/json"})["code"] == 400
    assert _status(server, "DELETE", path, json={"gracePeriodSeconds": "x"})["code"] == 400
    strategic = {"Content-Type": "application/strategic-merge-patch+json"}
    workflow = "/apis/argoproj.io/v1alpha1/namespaces/kubeflow/workflows/wf-1"
    assert _status(server, "PATCH", workflow, body=b"{}", headers=strategic)["code"] == 415
    assert server.cluster.asked == []


def test_a_long_list_is_sent_in_pieces_that_make_one_document(server: Server) -> None:
    server.do(lambda cluster: [cluster.add("pods", pod(f"many-{index:04}", "many")) for index in range(1201)])
    answer = http.request("GET", f"{server.url}/api/v1/namespaces/many/pods")
    names = [each["metadata"]["name"] for each in json.loads(answer.data)["items"]]
    assert names == [f"many-{index:04}" for index in range(1201)]


def test_openapi_describes_nothing(server: Server) -> None:
    assert json.loads(http.request("GET", f"{server.url}/openapi/v2").data)["definitions"] == {}


async def _answers(first: str) -> dict[str, tuple[int, str]]:
    """What services on the same port answer, mounted before or after the API."""

    async def log(request: web.Request) -> web.Response:
        return web.Response(text=f"log of {request.match_info['name']}")

    async def runs(_: web.Request) -> web.Response:
        return web.Response(text="runs")

    def neighbours() -> None:
        app.router.add_get("/api/v1/namespaces/{namespace}/pods/{name}/log", log)
        app.router.add_get("/apis/v2beta1/runs", runs)

    app, cluster = web.Application(), Cluster()
    if first == "neighbours":
        neighbours()
    mount(app, cluster.store, cluster, lambda: 0)
    if first == "api":
        neighbours()
    async with TestClient(TestServer(app)) as client:
        answers = {}
        for path in ("/api/v1/namespaces/a/pods/b/log", "/apis/v2beta1/runs", "/apis/v2beta1/none", "/elsewhere"):
            answer = await client.get(path)
            answers[path] = (answer.status, await answer.text())
        answer = await client.post("/apis/v2beta1/runs")
        answers["POST"] = (answer.status, await answer.text())
        return answers


@pytest.mark.parametrize("first", ["api", "neighbours"])
def test_other_services_share_the_port_undisturbed(first: str) -> None:
    assert asyncio.run(_answers(first)) == {
        "/api/v1/namespaces/a/pods/b/log": (200, "log of b"),
        "/apis/v2beta1/runs": (200, "runs"),
        "/apis/v2beta1/none": (404, "404: Not Found"),
        "/elsewhere": (404, "404: Not Found"),
        "POST": (405, "405: Method Not Allowed"),
    }
