import json
from types import SimpleNamespace

import pytest

from harness.drive.http.clients import client_of
from harness.model.errors import ConfigError
from harness.model.http import HttpRequest
from harness.model.plan import Plan
from harness.plan import kubeconfig
from harness.plan.kubeconfig import Access, route_of
from harness.targets.credentials import Credentials
from tests.support.servers import Served

HOST = "kube://kubeflow/ml-pipeline:8888"
ME = ("kubeflow-userid", "me")


def plan(cluster, host=HOST):
    return Plan("kfp", host, {}, 1, 0, False, {"cluster": cluster})


@pytest.fixture
def server(monkeypatch):
    with Served(lambda path, _: (200, path)) as served:
        access = Access(served.url, "", "t0ken", "", "", "")
        monkeypatch.setattr(kubeconfig, "read_access", lambda _: access)
        yield served


def test_requests_go_through_the_proxy_with_the_kubeconfigs_token(server):
    client = client_of(plan(server.url), Credentials(headers=(ME,)))
    answer = client(HttpRequest("GET", "/apis/v2beta1/healthz"))
    assert answer.body == b"/api/v1/namespaces/kubeflow/services/http:ml-pipeline:8888/proxy/apis/v2beta1/healthz"
    assert server.tokens == ["Bearer t0ken"]
    assert route_of(plan(server.url), Credentials(headers=(ME,))).credentials.fields("")["kubeflow-userid"] == "me"


@pytest.mark.parametrize(
    "lost",
    [
        {"token": "abc"}, {"token_file": "f"}, {"cookie_file": "f"}, {"certificate": "f"}, {"authorities": "f"},
        {"headers": (("Authorization", "x"),)},
    ],
)  # fmt: skip
def test_what_the_api_server_would_remove_is_refused(server, lost):
    with pytest.raises(ConfigError, match="do not pass the API server"):
        route_of(plan(server.url), Credentials(**lost))
    assert not server.asked


@pytest.mark.parametrize("cluster", ["https://other.example", ""])
def test_another_cluster_than_the_tests_is_refused(server, cluster):
    with pytest.raises(ConfigError, match="the kubeconfig leads to"):
        route_of(plan(cluster), Credentials())


def test_a_mistyped_service_is_refused_before_anything_is_asked(server):
    with pytest.raises(ConfigError, match="names no service"):
        kubeconfig.resolved(plan("", "kube://kubeflow"))
    assert not server.asked


@pytest.mark.parametrize(
    ("found", "later_s", "asked"),
    [
        ({"token": "t", "token_expires_s": 1060.0}, 20, 1),
        ({"token": "t", "token_expires_s": 1060.0}, 52, 2),
        ({"token": "t"}, 110, 1),
        ({"token": "t"}, 130, 2),
        ({"token": ""}, 10_000, 1),
    ],
)
def test_a_later_test_of_the_same_process_gets_a_token_that_has_not_expired(monkeypatch, found, later_s, asked):
    now_s, answers = [1000.0], []

    def answer(*what):
        answers.append(what)
        empty = {"host": "https://c", "namespace": "", "authority": "", "certificate": "", "key": ""}
        return json.dumps({**empty, **found})

    monkeypatch.setattr(kubeconfig, "_asked", answer)
    monkeypatch.setattr(kubeconfig, "_READ", {})
    monkeypatch.setattr(kubeconfig, "time", SimpleNamespace(time=lambda: now_s[0], monotonic=lambda: now_s[0]))
    kubeconfig.read_access("")
    now_s[0] += later_s
    assert kubeconfig.read_access("").token == found["token"]
    assert len(answers) == asked
