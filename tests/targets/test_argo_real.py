"""Workflows at a real kube-apiserver: created, watched to their end, shut down, deleted, and refused."""

import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

from harness.collectors.collector import ObserverSettings
from harness.collectors.journal import Journal
from harness.collectors.runs.run_watch import open_collector
from harness.drive.http.clients import client_of
from harness.model.errors import ConfigError
from harness.model.http import HttpRequest
from harness.model.plan import Plan
from harness.model.records import Event, Span
from harness.model.scenario import Scenario
from harness.plan import kubeconfig
from harness.store import RunFolder
from harness.targets import argo
from harness.targets.credentials import Credentials
from harness.targets.target import Cleanup, RejectedError
from tests.support.argo_exchange import MANIFEST, prepared
from tests.support.argo_platform import recorded
from tests.support.observations import observation as observed_by
from tests.support.real_kubernetes import RealCluster, admin
from tests.support.real_parts.kube import Kube, allow, crd, types
from tests.support.servers import until

NAMESPACE = "argo-target"
ROOT = "/apis/argoproj.io/v1alpha1"


WORKFLOWS = f"{ROOT}/namespaces/{NAMESPACE}/workflows"


@pytest.fixture(scope="module")
def kube(real_cluster: RealCluster) -> Iterator[Kube]:
    kube = admin(real_cluster)
    kube.create("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    with types(kube, crd("Workflow"), crd("WorkflowTemplate")):
        yield kube


def finish(kube: Kube, name: str, real: dict) -> None:
    """What a controller does at a workflow's end."""
    kube.patch(f"{WORKFLOWS}/{name}", {"metadata": {"labels": real["metadata"]["labels"]}, "status": real["status"]})


@pytest.fixture(scope="module")
def access(real_cluster: RealCluster) -> kubeconfig.Access:
    """As the official client reads it, in a process of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", str(real_cluster.kubeconfig))
        return kubeconfig.read_access("")


@pytest.fixture
def plan(kube: Kube, access: kubeconfig.Access, real_cluster: RealCluster, monkeypatch, tmp_path) -> Plan:
    monkeypatch.setattr(kubeconfig, "read_access", lambda _: access)
    monkeypatch.setenv("KUBECONFIG", str(real_cluster.kubeconfig))
    options = dict(prepared(tmp_path, namespace=NAMESPACE).options)
    draft = Plan("argo", "kubeconfig", {}, 1, 0, False, options, started_at=time.time_ns(), id="t1")
    return kubeconfig.resolved(draft)


def set_up(plan: Plan, exchange) -> argo.ArgoTarget:
    found = argo.from_plan(plan).set_up(exchange)
    return argo.from_plan(Plan(
        "argo", plan.host, {}, 1, 0, False, {**plan.target_options, **found.options}, id="t1"
    ))  # fmt: skip


def test_a_kubeconfig_leads_to_its_cluster_and_to_no_other(plan, access, real_cluster, monkeypatch):
    assert (access.host, access.token) == (real_cluster.url, real_cluster.token)
    assert access.authority == real_cluster.ca.read_text()
    assert client_of(plan, Credentials())(HttpRequest("GET", "/version")).status == 200
    monkeypatch.setattr(kubeconfig, "read_access", lambda _: replace(access, host="https://127.0.0.1:9"))
    with pytest.raises(ConfigError, match="the kubeconfig leads to"):
        client_of(plan, Credentials())


def test_without_a_usable_kubeconfig_the_user_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    with pytest.raises(ConfigError, match="there is no kubeconfig") as raised:
        kubeconfig.read_access("")
    assert "kubectl" in raised.value.hint


def test_runs_are_created_watched_to_their_end_shut_down_and_deleted(plan, kube, tmp_path):
    exchange = client_of(plan, Credentials())
    target = set_up(plan, exchange)
    folder = RunFolder.create(tmp_path, "run", exactly=True)
    options = dict(target._options)
    watched = Plan("argo", plan.host, {}, 1, 0, False, options, started_at=plan.started_at, id="t1")
    folder.write_plan(watched)

    def ends():
        return {each.object: each.reason for each in folder.records(Event) if each.kind == "Run"}

    with folder.recorder() as recorder:
        observation = observed_by(folder, Journal(recorder), plan=watched, target=target, settings=ObserverSettings(host=plan.host, kube_requests_per_s=100.0))  # fmt: skip
        watch, stop = open_collector(observation), threading.Event()
        thread = threading.Thread(target=watch.collect, args=(stop,))
        thread.start()
        try:
            until(watch.live, "the watch has begun", 60)
            names = [target.submit(Scenario(str(k), "a", {"url": "u"}, {}), exchange) for k in range(3)]
            finish(kube, names[0], recorded("plain-steps"))
            finish(kube, names[1], recorded("plain-oom"))
            kube.delete(f"{WORKFLOWS}/{names[1]}")  # as a ttlStrategy may at once
            target.clean(names[2], Cleanup.TERMINATE, exchange)
            finish(kube, names[2], recorded("plain-terminate"))
            expected = {names[0]: "SUCCEEDED", names[1]: "FAILED", names[2]: "CANCELED"}
            until(lambda: ends() == expected, "all ends are seen", 60)
        finally:
            stop.set()
            thread.join()
    stored = kube.get(f"{WORKFLOWS}/{names[2]}")
    assert stored["spec"]["shutdown"] == "Terminate"
    assert {each.task for each in folder.records(Span) if each.phase == "task"} >= {"a", "b", "c"}
    for name in names:
        target.clean(name, Cleanup.DELETE, exchange)
        target.clean(name, Cleanup.DELETE, exchange)
    assert kube.get(WORKFLOWS)["items"] == []


def test_the_same_name_twice_is_a_conflict_and_one_workflow(plan, kube, monkeypatch):
    exchange = client_of(plan, Credentials())
    target = set_up(plan, exchange)
    monkeypatch.setattr(argo, "workflow_name", lambda _: "same")
    scenario = Scenario("1", "a", {"url": "u"}, {})
    target.submit(scenario, exchange)
    with pytest.raises(RejectedError, match="arrived twice"):
        target.submit(scenario, exchange)
    target.clean("same", Cleanup.DELETE, exchange)


@pytest.mark.parametrize(
    ("user", "refused", "verbs"),
    [("nobody", "create", "the verb create"), ("creator", "list", "the verbs list and watch")],
)
def test_an_account_without_the_right_is_told_verb_and_resource_before_anything_is_sent(
    plan, kube, user, refused, verbs
):
    if user == "creator":
        subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}
        allow(kube, NAMESPACE, subject, {"apiGroups": ["argoproj.io"], "resources": ["workflows"], "verbs": ["create"]})
    exchange = client_of(plan, Credentials())

    def impersonated(request: HttpRequest):
        headers = {**request.headers, "Impersonate-User": user, "Impersonate-Group": "system:authenticated"}
        return exchange(HttpRequest(request.method, request.path, request.body, headers))

    with pytest.raises(ConfigError, match=f'cannot {refused} resource "workflows"') as raised:
        argo.from_plan(plan).set_up(impersonated)
    assert f"{verbs} on the resource workflows" in raised.value.hint


def test_a_template_in_the_cluster_is_found_or_told_missing(plan, kube, tmp_path):
    import yaml

    spec = yaml.safe_load(MANIFEST)["spec"]
    template = {
        "apiVersion": "argoproj.io/v1alpha1", "kind": "WorkflowTemplate", "metadata": {"name": "nightly"}, "spec": spec,
    }  # fmt: skip
    kube.create(f"{ROOT}/namespaces/{NAMESPACE}/workflowtemplates", template)
    exchange = client_of(plan, Credentials())
    options = {key: value for key, value in plan.target_options.items() if key != "workflow"}

    def found(name: str):
        asked = {**options, "from": f"WorkflowTemplate/{name}"}
        return argo.from_plan(Plan("argo", plan.host, {}, 1, 0, False, asked)).set_up(exchange)

    assert [each.name for each in found("nightly").inputs] == ["url", "rows", "size", "fast", "note"]
    with pytest.raises(ConfigError, match="there is no WorkflowTemplate hourly in the namespace argo-target") as raised:
        found("hourly")
    assert "nightly" in raised.value.hint
