"""The cluster collector against a real API server and scheduler; the tests play the kubelets."""

from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from harness.collectors.collector import Activity
from harness.model import Event, Node
from harness.model.phases import RUNNING, SCHEDULING, UNSCHEDULABLE
from tests.support.real_cluster_runs import last_spans, live, observing, of_ourselves, placements, step, through
from tests.support.real_kubernetes import RealCluster, admin
from tests.support.real_parts.kube import allow, crd, token, types
from tests.support.servers import kubeconfig, proxied, until


def test_pods_and_nodes_of_a_real_scheduler(real_cluster: RealCluster, namespace: str, tmp_path: Path) -> None:
    if not real_cluster.schedules:
        pytest.skip("the folder named by KUBEBUILDER_ASSETS holds no kube-scheduler")
    node = f"node-{namespace}"
    with observing(tmp_path, kubeconfig=str(real_cluster.kubeconfig)) as (cluster, folder):
        for k in range(10):
            step(real_cluster, namespace, f"train-{k}")
        until(
            lambda: sum(span.phase == UNSCHEDULABLE for span in last_spans(folder, namespace).values()) >= 2,
            "two pods that do not fit",
        )
        fit = {
            name
            for (name, phase), span in last_spans(folder, namespace).items()
            if phase == SCHEDULING and span.node == node
        }
        for name in sorted(fit)[:3]:
            real_cluster.run_pod(namespace, name)
            real_cluster.finish_pod(namespace, name, *((137, "OOMKilled") if name == min(fit) else (0,)))
        until(
            lambda: (
                sum(
                    span.node is not None
                    for (_, p), span in last_spans(folder, namespace).items()
                    if p == UNSCHEDULABLE
                )
                >= 2
            ),
            "the queued pods on the node",
        )
        until(lambda: (live(cluster).pods or {}).get("Failed") == 1, "the failed pod")
    spans, events = last_spans(folder, namespace), folder.records(Event)
    assert len(fit) == 8
    assert {span.run for span in spans.values()} == {namespace}
    assert {span.task for span in spans.values()} == {"train"}
    ran = [span for (_, phase), span in spans.items() if phase == RUNNING]
    assert len(ran) == 3
    assert all(span.ended_at is not None and span.ended_at >= span.started_at for span in ran)
    ours = [event for event in events if event.object in {name for name, _ in spans}]
    assert {event.run for event in ours if event.reason in {"FailedScheduling", "Scheduled"}} == {namespace}
    assert placements(folder, namespace) == 10
    assert [event.object for event in events if event.reason == "OOMKilled"] == [min(fit)]
    (last,) = {each.name: each for each in folder.records(Node) if each.name == node}.values()
    assert (last.pool, last.spot, last.cpu, last.memory, last.gone_at) == ("steps", True, 4.0, 16 * 2.0**30, None)
    assert last.ready_at is not None


def test_a_node_that_is_lost_is_gone_and_so_are_its_pods(
    real_cluster: RealCluster, namespace: str, tmp_path: Path
) -> None:
    from kubernetes import client

    node = f"node-{namespace}"
    with observing(tmp_path, kubeconfig=str(real_cluster.kubeconfig)) as (_, folder):
        step(real_cluster, namespace, "train")
        until(
            lambda: (
                ("train", SCHEDULING) in last_spans(folder, namespace)
                and last_spans(folder, namespace)["train", SCHEDULING].node
            ),
            "placement",
        )
        real_cluster.run_pod(namespace, "train")
        until(lambda: ("train", RUNNING) in last_spans(folder, namespace), "the pod running")
        real_cluster.remove_node(node)
        client.CoreV1Api(real_cluster.client()).delete_namespaced_pod("train", namespace, grace_period_seconds=0)
        until(lambda: any(each.name == node and each.gone_at for each in folder.records(Node)), "the node gone")
        until(lambda: last_spans(folder, namespace)["train", RUNNING].ended_at, "the pod gone")


def test_a_watch_that_is_cut_repeatedly_loses_nothing(
    real_cluster: RealCluster, namespace: str, tmp_path: Path
) -> None:
    with (
        proxied(int(real_cluster.url.rpartition(":")[2])) as proxy,
        observing(tmp_path, kubeconfig=through(proxy, real_cluster, tmp_path)) as (_, folder),
    ):
        for k in range(6):
            step(real_cluster, namespace, f"train-{k}")
            proxy.cut()
            proxy.refuses = k == 3
        proxy.refuses = False
        until(lambda: len({name for name, _ in last_spans(folder, namespace)}) == 6, "six pods")
        until(lambda: placements(folder, namespace) >= 6, "six placements")
    assert {event.reason for event in of_ourselves(folder)} <= {"Retry", "Resumed"}
    assert placements(folder, namespace) == 6


def test_with_access_to_one_namespace_only_that_one_is_watched(
    real_cluster: RealCluster, namespace: str, tmp_path: Path
) -> None:
    """An account with access to pods and events of its namespace only."""
    _allow(real_cluster, namespace, resources=["pods", "events"], verbs=["get", "list", "watch"])
    config = _account(real_cluster, namespace, "observer", tmp_path)
    with observing(tmp_path, kubeconfig=config, platform_namespaces=(namespace,)) as (cluster, folder):
        step(real_cluster, namespace, "train")
        until(lambda: ("train", SCHEDULING) in last_spans(folder, namespace), "the pod")
        assert live(cluster).nodes is None
    refused = [event for event in of_ourselves(folder) if event.reason == "NotReachable"]
    assert {event.object for event in refused} == {
        "kubernetes nodes", "kubernetes events", "kubernetes volume claims", "kubernetes workflows",
        "kubernetes resource quotas",
    }  # fmt: skip
    assert "403" in refused[0].message


class _Told(Activity):
    """Remembers what was told about runs that pods have worked for."""

    def __init__(self) -> None:
        self.worked_so_far: list[object] = []
        super().__init__()

    def __setattr__(self, name: str, value: object) -> None:
        if name == "worked":
            self.worked_so_far.append(value)
        super().__setattr__(name, value)


def test_pods_that_may_be_listed_but_not_watched_are_not_taken_for_those_of_another_cluster(
    real_cluster: RealCluster, namespace: str, tmp_path: Path
) -> None:
    _allow(real_cluster, namespace, resources=["pods"], verbs=["get", "list"])
    config, told = _account(real_cluster, namespace, "observer", tmp_path), _Told()
    with observing(tmp_path, told, kubeconfig=config, platform_namespaces=(namespace,)) as (_, folder):
        until(lambda: len(told.worked_so_far) > 3, "a second of observation")
    assert all(worked is None for worked in told.worked_so_far)
    refused = [event.message for event in of_ourselves(folder) if event.object == "kubernetes pods"]
    assert len(refused) == 1
    assert 'cannot watch resource "pods"' in refused[0]


def test_the_shipped_roles_suffice_and_allow_no_writing(
    real_cluster: RealCluster, namespace: str, tmp_path: Path
) -> None:
    from kubernetes import client, utils

    api = real_cluster.client()
    client.CoreV1Api(api).create_namespace({"metadata": {"name": "kubeflow"}})
    rights = client.RbacAuthorizationV1Api(api)
    for remove in (rights.delete_cluster_role, rights.delete_cluster_role_binding):  # of another test
        with suppress(client.ApiException):
            remove("pipeswarm-observer")
    documents = list(yaml.safe_load_all((Path(__file__).parents[3] / "deploy" / "rbac.yaml").read_text()))
    for document in documents:
        assert all(verb in {"get", "list", "watch"} for rule in document.get("rules", ()) for verb in rule["verbs"])
        utils.create_from_dict(api, document)
    account = next(each for each in documents if each["kind"] == "ServiceAccount")["metadata"]
    config = _account(real_cluster, account["namespace"], account["name"], tmp_path)
    with observing(tmp_path, kubeconfig=config) as (_, folder):
        step(real_cluster, namespace, "train")
        until(lambda: ("train", SCHEDULING) in last_spans(folder, namespace), "the pod")
        assert folder.records(Node)
    assert not of_ourselves(folder)


def test_karpenters_claims_are_watched_where_the_cluster_has_the_type(
    real_cluster: RealCluster, tmp_path: Path
) -> None:
    kube, path = admin(real_cluster), "/apis/karpenter.sh/v1/nodeclaims"
    with (
        types(kube, crd("NodeClaim", "Cluster", api="karpenter.sh/v1")),
        observing(tmp_path, kubeconfig=str(real_cluster.kubeconfig)) as (cluster, folder),
    ):
        until(lambda: live(cluster).coming_nodes == 0, "the first listing")
        kube.create(path, {"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim", "metadata": {"name": "default-a"}})
        until(lambda: live(cluster).coming_nodes == 1, "the claim")
        condition = {"type": "Launched", "status": "Unknown", "reason": "LaunchFailed", "message": "no capacity"}
        kube.patch(f"{path}/default-a", {"status": {"conditions": [condition]}})
        kube.delete(f"{path}/default-a")
        until(lambda: live(cluster).coming_nodes == 0, "its end")
    told = [(each.reason, each.message) for each in folder.records(Event) if each.kind == "NodeClaim"]
    assert told == [
        ("Created", ""),
        ("NodeClaimFailed", "LaunchFailed: no capacity"),
        ("NodeClaimFailed", "deleted before it was launched: LaunchFailed: no capacity"),
    ]


def _account(real: RealCluster, namespace: str, name: str, tmp_path: Path) -> str:
    """A kubeconfig that acts as a service account."""
    shown = token(admin(real), namespace, name)
    return kubeconfig(tmp_path / "account", real.url, token=shown, ca=str(real.ca), namespace=namespace)


def _allow(real: RealCluster, namespace: str, **rule: list[str]) -> None:
    """Give the account `observer` rights in its namespace."""
    subject = {"kind": "ServiceAccount", "name": "observer", "namespace": namespace}
    allow(admin(real), namespace, subject, {"apiGroups": [""], **rule})
