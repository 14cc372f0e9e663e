"""Workflows at a real kube-apiserver: created, watched to their end, shut down, deleted, and refused."""

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
import urllib3

from harness.collectors.collector import Observation, ObserverSettings
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
from tests.support.real_kubernetes import RealCluster
from tests.support.real_parts.kube import crd
from tests.support.servers import until

NAMESPACE = "argo-target"
ROOT = "/apis/argoproj.io/v1alpha1"
PLURALS = {"workflows": "Workflow", "workflowtemplates": "WorkflowTemplate"}


class Admin:
    """Plain requests as the cluster's administrator."""

    def __init__(self, cluster: RealCluster) -> None:
        self._url = cluster.url
        self._http = urllib3.PoolManager(ca_certs=str(cluster.ca))
        self._token = cluster.token

    def ask(self, method: str, path: str, body: object = None, kind: str = "application/json") -> dict:
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": kind}
        answer = self._http.request(method, self._url + path, body=json.dumps(body).encode(), headers=headers)
        return answer.json() if answer.headers["Content-Type"] == "application/json" else {}

    def finish(self, name: str, real: dict) -> None:
        """What a controller does at a workflow's end."""
        patch = {"metadata": {"labels": real["metadata"]["labels"]}, "status": real["status"]}
        self.ask("PATCH", f"{ROOT}/namespaces/{NAMESPACE}/workflows/{name}", patch, "application/merge-patch+json")


@pytest.fixture(scope="module")
def admin(real_cluster: RealCluster) -> Iterator[Admin]:
    admin = Admin(real_cluster)
    for kind in PLURALS.values():
        admin.ask("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd(kind))
    admin.ask("POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    for _ in range(200):
        if "items" in admin.ask("GET", f"{ROOT}/workflowtemplates"):
            break
        time.sleep(0.05)
    yield admin
    for plural in PLURALS:  # other tests see a cluster without Argo
        admin.ask("DELETE", f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{plural}.argoproj.io")


@pytest.fixture(scope="module")
def access(real_cluster: RealCluster) -> kubeconfig.Access:
    """As the official client reads it, in a process of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KUBECONFIG", str(real_cluster.kubeconfig))
        return kubeconfig.read_access("")


@pytest.fixture
def plan(admin: Admin, access: kubeconfig.Access, real_cluster: RealCluster, monkeypatch, tmp_path) -> Plan:
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


def test_runs_are_created_watched_to_their_end_shut_down_and_deleted(plan, admin, tmp_path):
    exchange = client_of(plan, Credentials())
    target = set_up(plan, exchange)
    folder = RunFolder.create(tmp_path, "run", exactly=True)
    options = dict(target._options)
    watched = Plan("argo", plan.host, {}, 1, 0, False, options, started_at=plan.started_at, id="t1")
    folder.write_plan(watched)

    def ends():
        return {each.object: each.reason for each in folder.records(Event) if each.kind == "Run"}

    with folder.recorder() as recorder:
        observation = Observation(
            folder=folder, plan=watched, target=target, settings=ObserverSettings(plan.host, requests_per_s=100.0),
            journal=Journal(recorder), options={},
        )  # fmt: skip
        watch, stop = open_collector(observation), threading.Event()
        thread = threading.Thread(target=watch.collect, args=(stop,))
        thread.start()
        try:
            until(watch.live, "the watch has begun", 60)
            names = [target.submit(Scenario(str(k), "a", {"url": "u"}, {}), exchange) for k in range(3)]
            admin.finish(names[0], recorded("plain-steps"))
            admin.finish(names[1], recorded("plain-oom"))
            admin.ask("DELETE", f"{ROOT}/namespaces/{NAMESPACE}/workflows/{names[1]}")  # as a ttlStrategy may at once
            target.clean(names[2], Cleanup.TERMINATE, exchange)
            admin.finish(names[2], recorded("plain-terminate"))
            expected = {names[0]: "SUCCEEDED", names[1]: "FAILED", names[2]: "CANCELED"}
            until(lambda: ends() == expected, "all ends are seen", 60)
        finally:
            stop.set()
            thread.join()
    stored = admin.ask("GET", f"{ROOT}/namespaces/{NAMESPACE}/workflows/{names[2]}")
    assert stored["spec"]["shutdown"] == "Terminate"
    assert {each.task for each in folder.records(Span) if each.phase == "task"} >= {"a", "b", "c"}
    for name in names:
        target.clean(name, Cleanup.DELETE, exchange)
        target.clean(name, Cleanup.DELETE, exchange)
    assert admin.ask("GET", f"{ROOT}/namespaces/{NAMESPACE}/workflows")["items"] == []


def test_the_same_name_twice_is_a_conflict_and_one_workflow(plan, admin, monkeypatch):
    exchange = client_of(plan, Credentials())
    target = set_up(plan, exchange)
    monkeypatch.setattr(argo, "workflow_name", lambda _: "same")
    scenario = Scenario("1", "a", {"url": "u"}, {})
    target.submit(scenario, exchange)
    with pytest.raises(RejectedError, match="arrived twice"):
        target.submit(scenario, exchange)
    target.clean("same", Cleanup.DELETE, exchange)


def test_an_account_without_the_right_is_told_verb_and_resource_before_anything_is_sent(plan, real_cluster):
    admin = client_of(plan, Credentials())

    def nobody(request: HttpRequest):
        headers = {**request.headers, "Impersonate-User": "nobody", "Impersonate-Group": "system:authenticated"}
        return admin(HttpRequest(request.method, request.path, request.body, headers))

    with pytest.raises(ConfigError, match='cannot create resource "workflows"') as raised:
        argo.from_plan(plan).set_up(nobody)
    assert "the verb create on the resource workflows" in raised.value.hint


def test_an_account_that_may_only_create_is_told_that_it_has_to_see_the_ends(plan, admin, real_cluster):
    rules = [{"apiGroups": ["argoproj.io"], "resources": ["workflows"], "verbs": ["create"]}]
    subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "creator"}]
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "creator"}
    path = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}"
    admin.ask("POST", f"{path}/roles", {"metadata": {"name": "creator"}, "rules": rules})
    binding = {"metadata": {"name": "creator"}, "roleRef": reference, "subjects": subjects}
    admin.ask("POST", f"{path}/rolebindings", binding)
    exchange = client_of(plan, Credentials())

    def creator(request: HttpRequest):
        headers = {**request.headers, "Impersonate-User": "creator", "Impersonate-Group": "system:authenticated"}
        return exchange(HttpRequest(request.method, request.path, request.body, headers))

    with pytest.raises(ConfigError, match='cannot list resource "workflows"') as raised:
        argo.from_plan(plan).set_up(creator)
    assert "the verbs list and watch on the resource workflows" in raised.value.hint


def test_a_template_in_the_cluster_is_found_or_told_missing(plan, admin, tmp_path):
    import yaml

    spec = yaml.safe_load(MANIFEST)["spec"]
    template = {
        "apiVersion": "argoproj.io/v1alpha1", "kind": "WorkflowTemplate", "metadata": {"name": "nightly"}, "spec": spec,
    }  # fmt: skip
    admin.ask("POST", f"{ROOT}/namespaces/{NAMESPACE}/workflowtemplates", template)
    exchange = client_of(plan, Credentials())
    options = {key: value for key, value in plan.target_options.items() if key != "workflow"}

    def found(name: str):
        asked = {**options, "from": f"WorkflowTemplate/{name}"}
        return argo.from_plan(Plan("argo", plan.host, {}, 1, 0, False, asked)).set_up(exchange)

    assert [each.name for each in found("nightly").inputs] == ["url", "rows", "size", "fast", "note"]
    with pytest.raises(ConfigError, match="there is no WorkflowTemplate hourly in the namespace argo-target") as raised:
        found("hourly")
    assert "nightly" in raised.value.hint
