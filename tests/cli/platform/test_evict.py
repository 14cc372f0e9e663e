"""``pipeswarm evict`` at the simulated platform's Kubernetes API, and at a real one."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml
from kubernetes import client, config

from harness.cli import main
from harness.collectors.kubernetes.evictions import EvictionApi
from tests.support.kfp_api import call
from tests.support.platforms import UNCACHED
from tests.support.real_cluster_runs import namespace, step
from tests.support.real_kubernetes import RealCluster
from tests.support.servers import Served, kubeconfig, until
from tests.support.serving import QUICK, Serve
from tests.support.serving import Served as Platform

__all__ = ["namespace"]

# A spot pool for the steps, and the platform's own pods on machines of theirs; steps take long enough to be evicted.
LASTING = QUICK.replace("duration: 400ms", "duration: 600ms").replace("initial: 2, min: 2, max: 3}]", "initial: 1}]")
TEN_AT_ONCE = ["--rate", "20/s", "--for", "1s"]


@pytest.fixture(scope="module")
def platform(serve: Serve) -> Platform:
    return serve(profile=LASTING)


def evict(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> dict[str, list[dict[str, str]]]:
    assert main(["evict", *arguments, "--json"]) == code
    found: dict[str, list[dict[str, str]]] = json.loads(capsys.readouterr().out)
    return found


def pods_of_runs(core: client.CoreV1Api) -> list[client.V1Pod]:
    return list(core.list_namespaced_pod("kubeflow", label_selector="workflows.argoproj.io/workflow").items)


def test_evicted_steps_of_a_simulated_platform_are_tried_again_and_a_dry_run_changes_nothing(
    platform: Platform, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", platform.kubeconfig)
    core = client.CoreV1Api(config.new_client_from_config(platform.kubeconfig))
    spec = {"pipeline_spec": yaml.safe_load(UNCACHED), "display_name": "evicted"}
    status, run = call(platform, "POST", "/runs", spec)
    assert status == 200, run
    until(lambda: any(pod.status.phase == "Running" for pod in pods_of_runs(core)), "a step at work")

    dry: dict[str, list[dict[str, str]]] = {}
    until(lambda: dry.update(evict(capsys, *TEN_AT_ONCE)) or dry["victims"], "a step that could be evicted")
    assert dry["dry_run"]
    assert {each["run"] for each in dry["victims"]} == {run["run_id"]}
    assert not [pod for pod in pods_of_runs(core) if pod.metadata.deletion_timestamp]

    done = evict(capsys, *TEN_AT_ONCE, "--yes")
    evicted = {each["victim"]["name"] for each in done["attempts"] if not each["failure"]}  # type: ignore[index]
    assert evicted
    until(lambda: call(platform, "GET", f"/runs/{run['run_id']}")[1]["state"] in {"SUCCEEDED", "FAILED"}, "the end")
    (workflow,) = client.CustomObjectsApi(core.api_client).list_namespaced_custom_object(
        "argoproj.io", "v1alpha1", "kubeflow", "workflows"
    )["items"]
    said = [node.get("message") for node in workflow["status"]["nodes"].values() if node["type"] == "Pod"]
    assert said.count("pod deleted") >= 1


def test_platform_pods_are_refused_and_a_missing_right_is_named(
    platform: Platform, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBECONFIG", platform.kubeconfig)
    found = evict(capsys, "--selector", "app=mysql")
    assert [each["reason"] for each in found["refused"]] == ["works for no run"]
    assert not found["victims"]
    assert main(["evict", "--selector", "app=mysql", "--rate", "6/h", "--for", "10h"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "0 pods may be evicted now."
    assert shown[1] == "Not evicted, unless named by --allow:"
    assert shown[2].endswith(" works for no run")
    assert shown[3].startswith("Nothing was changed. With --yes: ")
    assert main(["evict", "--nodes", "--selector", "agentpool=pool"]) == 2
    assert "kubeflow/" in capsys.readouterr().err
    forbidden = {"kind": "Status", "code": 403, "message": 'User "u" cannot list resource "pods"'}
    with Served(lambda _path, _query: (403, forbidden)) as server:
        monkeypatch.setenv("KUBECONFIG", kubeconfig(tmp_path / "nobody", server.url))
        assert main(["evict"]) == 5
    said = capsys.readouterr().err
    assert 'cannot list resource "pods"' in said
    assert "docs/spot.md" in said


def test_an_interrupted_notice_leaves_the_node_as_it_was(platform: Platform, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", platform.kubeconfig)
    core = client.CoreV1Api(config.new_client_from_config(platform.kubeconfig))
    name = core.list_node().items[0].metadata.name

    def interrupted() -> None:
        assert core.read_node(name).spec.unschedulable
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        EvictionApi().delete_node(name, interrupted)
    assert not core.read_node(name).spec.unschedulable


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--nodes"], "--nodes needs a --selector"),
        (["--rate", "6", "--for", "1h"], "more than 10,000 evictions"),
        (["--selector", "a in"], "--selector: "),
        (["--nodes", "--selector", "agentpool=none"], "no node matches --selector"),
        (["--kube-context", "none"], "no context 'none'"),
    ],
)
def test_what_can_not_be_meant_ends_with_2(
    arguments: list[str],
    said: str,
    platform: Platform,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KUBECONFIG", platform.kubeconfig)
    assert main(["evict", *arguments]) == 2
    assert said in capsys.readouterr().err


@contextmanager
def budget(real: RealCluster, namespace: str) -> Iterator[None]:
    """A PodDisruptionBudget that allows no eviction of the run's two pods."""
    about = "policy", "v1" if real.version >= (1, 21) else "v1beta1", namespace, "poddisruptionbudgets"
    body = {
        "apiVersion": "/".join(about[:2]), "kind": "PodDisruptionBudget", "metadata": {"name": "all"},
        "spec": {"minAvailable": 2, "selector": {"matchLabels": {"pipeline/runid": namespace}}},
    }  # fmt: skip
    objects = client.CustomObjectsApi(real.client())
    objects.create_namespaced_custom_object(*about, body)
    yield
    objects.delete_namespaced_custom_object(*about, "all")


def test_a_real_clusters_nodes_are_deleted_unless_they_hold_more_and_budgets_are_respected(
    real_cluster: RealCluster, namespace: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(real_cluster.kubeconfig))
    core = client.CoreV1Api(real_cluster.client())
    mine, shared, control = (f"{kind}-{namespace}"[:60].rstrip("-") for kind in ("mine", "shared", "control"))
    for name in (mine, shared):
        real_cluster.add_node(name, labels={"evicts": namespace})
    real_cluster.add_node(control, labels={"evicts": namespace, "node-role.kubernetes.io/control-plane": ""})
    step(real_cluster, namespace, "train", nodeSelector={"kubernetes.io/hostname": mine})
    step(real_cluster, namespace, "kept", nodeSelector={"kubernetes.io/hostname": shared})
    database = {"metadata": {"name": "mysql"}, "spec": {
        "containers": [{"name": "main", "image": "mysql"}], "nodeSelector": {"kubernetes.io/hostname": shared},
    }}  # fmt: skip
    core.create_namespaced_pod(namespace, database)
    until(lambda: all(pod.spec.node_name for pod in core.list_namespaced_pod(namespace).items), "all placed")
    real_cluster.run_pod(namespace, "train")

    nodes = ["--nodes", "--selector", f"evicts={namespace}", "--namespace", namespace, "--notice", "0s"]
    dry = evict(capsys, *nodes)
    assert [(each["name"], each["pods"]) for each in dry["victims"]] == [(mine, 1)]
    assert {each["name"]: each["reason"] for each in dry["refused"]} == {
        shared: f"holds {namespace}/mysql, not of the test",
        control: "runs the cluster's control plane",
    }
    assert len(core.list_node(label_selector=f"evicts={namespace}").items) == 3

    pods = ["--namespace", namespace, "--rate", "5/s", "--for", "1s", "--yes"]
    with budget(real_cluster, namespace):
        real_cluster.run_pod(namespace, "kept")
    evict(capsys, *pods, "--grace", "1")
    evicted = core.list_namespaced_pod(namespace, label_selector="pipeline/runid").items
    assert any(pod.metadata.deletion_timestamp for pod in evicted)

    real_cluster.lose_node(mine)
    (done, *rest) = evict(capsys, *nodes, "--rate", "2/s", "--for", "1s", "--yes")["attempts"]
    assert (done["victim"]["name"], done["failure"]) == (mine, "")  # type: ignore[index]
    assert all(each["failure"] == "nothing to evict" for each in rest)
    assert {node.metadata.name for node in core.list_node(label_selector=f"evicts={namespace}").items} == {
        shared,
        control,
    }
