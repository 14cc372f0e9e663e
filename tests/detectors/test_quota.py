"""A quota without room is named with its tenant, namespace and resource, and is told from other waits."""

import time
from dataclasses import replace

import pytest
import urllib3

from harness.detectors import diagnose
from harness.detectors.nodes import quota
from harness.model.phases import RUNNING
from harness.model.records import Outcome
from harness.simulator.cluster import Pod, Shape
from harness.simulator.cluster.quota import Quota
from harness.simulator.profile import Quota as Limits
from tests.support.injected.control_plane import waiting
from tests.support.injected.loads import steady
from tests.support.injected.services import noisy_tenants
from tests.support.real_kubernetes import RealCluster
from tests.support.timelines import Story

# In the words of a real API server, as Argo 4.0.8 puts them into a waiting node, and as a replica set reports them.
PODS = 'pods "{}" is forbidden: exceeded quota: tight, requested: pods=1, used: pods=6, limited: pods=6'
TWO = PODS.replace("pods=6, limited: pods=6", "pods=6,requests.cpu=3900m, limited: pods=6,requests.cpu=4")


def tenants(story: Story, *, namespaces: bool = True) -> Story:
    """Every second run is of team-b; with `namespaces`, each tenant has its own."""
    if namespaces:
        story.tenants = "team-a;team-b"
    story.records = [
        replace(each, tenant=("team-a", "team-b")[each.seq % 2]) if hasattr(each, "tenant") else each
        for each in story.records
    ]
    return story


def of_team_b() -> Story:
    story = tenants(steady())
    for seq in (11, 13, 15):
        story.event(20.0 + seq, "Task", "", "PENDING", TWO.format("x"), run=f"run-{seq:04d}", type="Warning")
    return story


def found(story: Story, tmp_path):
    return quota.detect(story.timeline(tmp_path))


def test_the_tenant_the_namespace_and_what_is_used_are_named(tmp_path):
    (finding,) = found(of_team_b(), tmp_path)
    assert finding.title == (
        "Tenant team-b has no quota left: tight rejects pods, and their runs wait "
        "(pods: 6 of 6 used, requests.cpu: 3900m of 4 used)"
    )
    assert finding.evidence[0].statement.startswith("pods of 3 runs of team-b that were looked at had to wait")
    assert finding.commands == (
        "kubectl describe resourcequota tight -n team-b", "kubectl edit resourcequota tight -n team-b",
    )  # fmt: skip


def test_it_is_not_taken_for_a_noisy_neighbour_or_full_nodes(tmp_path):
    names = {each.name for each in diagnose(of_team_b().timeline(tmp_path)).findings}
    assert "quota" in names
    assert not names & {"noisy-neighbour", "nodes-exhausted"}


def test_a_noisy_neighbour_has_no_quota_finding(tmp_path):
    assert not found(noisy_tenants(), tmp_path)


def test_in_one_namespace_for_all_no_tenant_is_blamed(tmp_path):
    story = tenants(waiting("kfp", PODS.format("x")), namespaces=False)
    (finding,) = found(story, tmp_path)
    assert finding.title.startswith("The namespace kubeflow has no quota left: tight rejects pods")
    assert " of team-a and team-b that" in finding.evidence[0].statement


def test_each_tenant_has_a_finding_of_its_own(tmp_path):
    story = tenants(waiting("kfp", PODS.format("x")))
    assert [each.title.split()[1] for each in found(story, tmp_path)] == ["team-a", "team-b"]


def test_the_event_of_a_replica_set_counts_for_the_tenant_of_its_namespace(tmp_path):
    story = tenants(steady())
    said = f"Error creating: {PODS.format('web-1')}"
    story.event(9.0, "ReplicaSet", "web", "FailedCreate", said, namespace="team-a", type="Warning")
    (finding,) = found(story, tmp_path)
    assert finding.title == "Tenant team-a has no quota left: tight rejects pods (pods: 6 of 6 used)"
    assert finding.evidence[0].statement.startswith("1 event about workloads without a run")


def of_dask(created_s: float) -> Story:
    """A run whose second worker is refused from second 10 on, and created later."""
    story = steady()
    run = story.submit(900, due=0.0)
    story.run(run, 0.0, 100.0)
    story.records = [
        replace(each, tenant="team-b") if hasattr(each, "tenant") and each.seq == 900 else each
        for each in story.records
    ]
    set_name = f"{run}-worker-6b6b"
    story.pod(run, "worker-6b6b-x", "node-0", (RUNNING, created_s, 99.0))
    said = f"Error creating: {PODS.format(f'{set_name}-x')}"
    for at_s in (10.0, 12.0):
        story.event(at_s, "ReplicaSet", set_name, "FailedCreate", said, namespace="team-b", type="Warning")
    return story


def test_a_replica_set_called_after_a_run_is_the_runs_and_its_tenants(tmp_path):
    (late,) = found(of_dask(90.0), tmp_path / "late")
    assert late.title == "Tenant team-b has no quota left: tight rejects pods, and their runs wait (pods: 6 of 6 used)"
    assert late.evidence[0].statement.startswith("pods of 1 run of team-b that were looked at had to wait")
    assert late.commands[0] == "kubectl describe resourcequota tight -n team-b"
    (soon,) = found(of_dask(15.0), tmp_path / "soon")
    assert soon.severity < late.severity / 2


def test_a_quota_on_workflows_rejects_submissions(tmp_path):
    story = tenants(steady())
    words = (
        'workflows.argoproj.io "w" is forbidden: exceeded quota: few, requested: count/workflows.argoproj.io=1, used: '
    )
    rejected = {
        "outcome": Outcome.REJECTED, "status": 403, "run": None, "tenant": "team-b",
        "error": f"{words}count/workflows.argoproj.io=9, limited: count/workflows.argoproj.io=9",
    }  # fmt: skip
    last = max(each.seq for each in story.records if hasattr(each, "tenant"))
    story.records = [
        replace(each, **rejected) if hasattr(each, "tenant") and each.seq == last else each for each in story.records
    ]
    (finding,) = found(story, tmp_path)
    assert finding.title == (
        "Tenant team-b has no quota left: few rejects runs (count/workflows.argoproj.io: 9 of 9 used)"
    )
    assert finding.severity > 0


@pytest.mark.parametrize("message", [
    "exceeded quota",
    "exceeded quota: {0}{1}, used: =,=, limited: ,,,",
    "pods is forbidden: exceeded quota: x, requested: a, used: a, limited: b=",
    "exceeded quota: " + "x=1," * 5000,
], ids=["bare", "braces", "no amounts", "endless"])  # fmt: skip
def test_messages_in_other_words_are_still_found(tmp_path, message):
    (finding,) = found(tenants(waiting("argo", message), namespaces=False), tmp_path)
    assert "has no quota left" in finding.title
    assert len(finding.title) < 400


def real_refusal(cluster: RealCluster, namespace: str) -> str:
    """What the API server answers to the second pod of a namespace whose quota is used up by the first."""
    http, headers = urllib3.PoolManager(ca_certs=str(cluster.ca)), {"Authorization": f"Bearer {cluster.token}"}

    def ask(method: str, path: str, body: object = None) -> dict:
        asked = {"json": body} if body else {}
        return http.request(method, f"{cluster.url}/api/v1/{path}", headers=headers, **asked).json()

    def create(name: str, cpu: str) -> dict:
        main = {"name": "main", "image": "none", "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
        pod = {"metadata": {"name": name}, "spec": {"containers": [main]}}
        return ask("POST", f"namespaces/{namespace}/pods", pod)

    ask("POST", "namespaces", {"metadata": {"name": namespace}})
    quotas, hard = f"namespaces/{namespace}/resourcequotas", {"pods": "1", "requests.cpu": "2"}
    ask("POST", quotas, {"metadata": {"name": "tight"}, "spec": {"hard": hard}})
    for _ in range(200):
        if "used" in ask("GET", f"{quotas}/tight").get("status", {}):
            break
        time.sleep(0.05)
    assert create("first", "1")["kind"] == "Pod"
    refused = create("second", "1500m")
    assert refused["code"] == 403, refused
    return refused["message"]


@pytest.mark.parametrize("target", ["kfp", "argo"])
def test_the_words_of_a_real_api_server_are_read_and_the_simulated_one_has_the_same(real_cluster, tmp_path, target):
    if not real_cluster.controls:
        pytest.skip("quotas are counted by kube-controller-manager, which is not there")
    message = real_refusal(real_cluster, f"quota-{target}")
    (finding, _) = found(tenants(waiting(target, message)), tmp_path)
    assert finding.title == (
        "Tenant team-a has no quota left: tight rejects pods, and their runs wait "
        "(pods: 1 of 1 used, requests.cpu: 1 of 2 used)"
    )
    simulated = Quota(Limits(pods=1, cpu=2.0), "tight")
    simulated.take(Pod("first", "a", Shape(1000, 2**30), ()))
    assert simulated.refusal(Pod("second", "a", Shape(1500, 2**30), ())) == message
