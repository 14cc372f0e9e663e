"""Platforms behind the API server's service proxy: their requests arrive, and what it answers itself is told."""

import json
from dataclasses import replace

import pytest

from harness.drive.http.clients import client_of
from harness.model.errors import ConfigError, TargetUnreachableError
from harness.model.http import HttpAnswer, HttpRequest
from harness.model.plan import Plan
from harness.model.scenario import Scenario
from harness.plan import kubeconfig
from harness.targets import argo, hetida, kfp
from harness.targets.argo.api import find_api
from harness.targets.credentials import Credentials
from harness.targets.hetida.api import round_trip_s
from harness.targets.kfp.api import Api
from harness.targets.kube_service import KubeService
from tests.support.argo_exchange import Argo, prepared
from tests.support.e2e import wait_for
from tests.support.hetida_platform import EXAMPLE, TEXTS, Platform, run_of
from tests.support.kfp_exchange import OPTIONS, ready
from tests.support.service_proxy import service_proxy


@pytest.fixture
def reach(monkeypatch):
    """Through the proxy of an API server, whose access is that of the kubeconfig."""

    def reach(host, access, target, options):
        monkeypatch.setattr(kubeconfig, "read_access", lambda _: access)
        return Plan(target, host, {}, 1, 0, False, {**options, "cluster": access.host}, id="t1")

    return reach


def set_up(module, plan, exchange, *package):
    """The plan's target, set up."""
    found = module.from_plan(plan, *package).set_up(exchange)
    return module.from_plan(replace(plan, target_options={**plan.target_options, **found.options}))


def test_kfp_runs_a_pipeline_behind_a_service(reach):
    host, platform = "kube://kubeflow/ml-pipeline:8888", ready(**{"POST /runs": {"run_id": "r1"}})
    with service_proxy(KubeService.parse(host).proxied, platform) as access:
        plan = reach(host, access, "kfp", OPTIONS | {"pipeline_name": "nightly-0123"})
        exchange = client_of(plan, Credentials())
        run = set_up(kfp, plan, exchange, b"pipelineInfo: {}").submit(
            Scenario("7", "north", {"url": "u"}, {}), exchange
        )
        exchange.close()
    assert (run, platform.requests("POST")[-1][0]) == ("r1", "/runs")


@pytest.mark.parametrize("path", ["/hdapi", ""])
def test_hetida_executes_behind_a_service(path, reach):
    host, platform = f"kube://hetida/https:backend:8443{path}", Platform()
    given = hetida.prepare({**TEXTS, "transformation": str(EXAMPLE)}, simulated=False)
    with service_proxy(KubeService.parse(host).proxied, platform) as access:
        plan = reach(host, access, "hetida", given.options)
        exchange = client_of(plan, Credentials())
        set_up(hetida, plan, exchange, given.package).submit(run_of(), exchange)
        exchange.close()
    assert platform.asked[-1].path == ("/transformations/execute" if path else "/api/transformations/execute")
    assert platform.sent["run_pure_plot_operators"] is False


def test_an_argo_server_starts_workflows_behind_a_service(reach, tmp_path):
    host, platform = "kube://argo/argo-server:2746", Argo(server=True)
    with service_proxy(KubeService.parse(host).proxied, platform) as access:
        plan = reach(host, access, "argo", prepared(tmp_path, namespace="team").options)
        exchange = client_of(plan, Credentials())
        run = set_up(argo, plan, exchange).submit(Scenario("7", "north", {"url": "u"}, {}), exchange)
        exchange.close()
    assert platform.workflows.keys() == {run}
    assert {path for _, path, _ in platform.asked if path.startswith("/api/v1/workflows/")} == {
        "/api/v1/workflows/team", "/api/v1/workflows/team/lint",
    }  # fmt: skip


def first_request(module, exchange):
    match module.__name__.rpartition(".")[2]:
        case "kfp":
            Api(exchange).healthz("")
        case "hetida":
            round_trip_s(exchange, "/info", "the backend")
        case _:
            find_api(exchange)


@pytest.mark.parametrize("module", [kfp, hetida, argo])
@pytest.mark.parametrize(
    ("status", "said"),
    [(503, 'no endpoints available for service "backend"'), (404, 'services "backend" not found')],
)
def test_a_service_without_ready_pods_is_told_with_where_to_look(module, status, said):
    """As a real API server answers, with and without an EndpointSlice."""
    body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": said, "code": status}
    with pytest.raises(TargetUnreachableError, match=said) as raised:
        first_request(module, lambda _: HttpAnswer(status, json.dumps(body).encode()))
    assert "no pod of this service is ready yet" in raised.value.hint


@pytest.fixture(scope="module")
def namespace(real_cluster):
    """A namespace of a real cluster with a service that has no endpoints, and the kubeconfig's access to it."""
    from kubernetes import client

    core = client.CoreV1Api(real_cluster.client())
    core.create_namespace({"metadata": {"name": "services"}})
    ports = [{"port": 80, "name": "http"}, {"port": 8887, "name": "grpc"}]
    spec = {"ports": ports, "selector": {"app": "ml-pipeline"}}
    core.create_namespaced_service("services", {"metadata": {"name": "ml-pipeline"}, "spec": spec})
    if not real_cluster.controls:  # as the controller of endpoints does for a service without pods
        labels = {"kubernetes.io/service-name": "ml-pipeline"}
        none = {"metadata": {"name": "ml-pipeline-1", "labels": labels}, "addressType": "IPv4", "endpoints": []}
        client.DiscoveryV1Api(real_cluster.client()).create_namespaced_endpoint_slice("services", none)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", str(real_cluster.kubeconfig))
        yield "services"
    core.delete_namespace("services")


def resolved(host):
    return kubeconfig.resolved(Plan("kfp", host, {}, 1, 0, False))


def test_a_real_api_server_says_that_a_service_has_no_endpoints(namespace):
    plan = resolved(f"kube://{namespace}/ml-pipeline")
    assert plan.host == f"kube://{namespace}/ml-pipeline:80", "the port for HTTP was looked up"
    exchange = client_of(plan, Credentials())
    wait_for(lambda: exchange(HttpRequest("GET", "/")).status != 404)  # until it has the service's endpoints
    with pytest.raises(TargetUnreachableError, match='no endpoints available for service "ml-pipeline"'):
        Api(exchange).healthz("")
    exchange.close()


@pytest.mark.soak
@pytest.mark.parametrize(
    ("service", "said", "hint"),
    [
        ("ml-pipelin", "the cluster has no service ml-pipelin in the namespace services", "ml-pipeline"),
        ("ml-pipeline:99", "the service ml-pipeline has not port 99", "80 (http), 8887 (grpc)"),
    ],
)
def test_a_service_that_a_real_cluster_lacks_is_refused_with_what_it_has(namespace, service, said, hint):
    with pytest.raises(ConfigError, match=said) as raised:
        resolved(f"kube://{namespace}/{service}")
    assert hint in raised.value.hint
