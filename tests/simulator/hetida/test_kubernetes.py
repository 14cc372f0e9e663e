"""hetida designer as the Kubernetes API shows it: pods on nodes, what they use, and what scaling them does."""

from typing import Any

import pytest

from harness.simulator.engine.calendar import Calendar
from harness.simulator.hetida.execution import Job, Work
from harness.simulator.kube_objects.actions import ClusterActions
from harness.simulator.kube_objects.components import RUNTIME
from harness.simulator.kube_objects.view import KubernetesView
from harness.simulator.platform import Platform
from harness.simulator.profile.file import load_profile


def shown(profile: str) -> tuple[Platform, KubernetesView]:
    view = KubernetesView(Calendar(1_790_000_000 * 10**9))
    platform = Platform(load_profile(profile), 1, view)
    view.follow(platform)
    platform.loop.run(0.001)
    return platform, view


def listed(view: KubernetesView, plural: str, kind: str) -> dict[str, dict[str, Any]]:
    resource = next(each for each in view.store.resources if (each.plural, each.kind) == (plural, kind))
    rendered = (resource.render(each.snapshot) for each in view.store.objects(resource))
    return {each["metadata"]["name"]: each for each in rendered}


def runtimes(view: KubernetesView) -> list[dict[str, Any]]:
    pods = listed(view, "pods", "Pod").values()
    return [each for each in pods if each["metadata"]["labels"]["app"] == RUNTIME]


@pytest.mark.parametrize(
    ("profile", "replicas"), [("hetida-pattern-1", 3), ("hetida-pattern-2", 3), ("hetida-pattern-3", 12)]
)
def test_a_scaling_patterns_replicas_are_spread_over_the_nodes(profile: str, replicas: int) -> None:
    _, view = shown(profile)
    pods = runtimes(view)
    nodes = [each["spec"]["nodeName"] for each in pods]
    assert len(pods) == replicas
    assert {nodes.count(name) for name in listed(view, "nodes", "Node")} == {replicas / 3}
    assert all(each["status"]["phase"] == "Running" for each in pods)
    assert "hetida-designer-backend" in listed(view, "deployments", "Deployment")
    assert "ml-pipeline" not in listed(view, "deployments", "Deployment")


def cores(measured: dict[str, Any]) -> float:
    usage = measured.get("usage") or measured["containers"][0]["usage"]
    return int(usage["cpu"].removesuffix("n")) / 1e9


def test_metrics_show_which_pods_and_nodes_compute() -> None:
    platform, view = shown("hetida-pattern-1")
    assert platform.hetida is not None
    idle = listed(view, "nodes", "NodeMetrics")
    over: list[object] = []
    for _ in range(4):  # all to the first replica
        execution = Job(Work(compute_s=10.0), over.append)
        platform.hetida.replicas[0].connect(lambda worker, execution=execution: worker.accept(execution))  # type: ignore[misc]
    platform.loop.run(20.0)
    pods, nodes = listed(view, "pods", "PodMetrics"), listed(view, "nodes", "NodeMetrics")
    first = view.deployments.pods[RUNTIME][0]
    assert first.node is not None
    busy = platform.hetida.replicas[0].core_s / platform.loop.now  # a window since the start
    assert 1.0 <= busy <= 2.0
    assert cores(pods[first.name]) == pytest.approx(busy)
    assert cores(nodes[first.node.name]) == pytest.approx(min(4.0, cores(idle[first.node.name]) + busy))
    for other in view.deployments.pods[RUNTIME][1:]:
        assert cores(pods[other.name]) == 0.0
    platform.loop.run(100.0)
    assert len(over) == 4
    assert view.meter.pod(first).core_s == pytest.approx(4 * 10.0)
    assert sum(view.meter.node(node).core_s for node in platform.cluster.nodes.values()) > 40.0
    listed(view, "pods", "PodMetrics")
    platform.loop.run(116.0)
    assert cores(listed(view, "pods", "PodMetrics")[first.name]) == 0.0


def test_scaling_the_deployment_gives_the_balancer_more_replicas_when_their_pods_run() -> None:
    platform, view = shown("hetida-pattern-3")
    assert platform.hetida is not None
    actions = ClusterActions(view, lambda: None)
    actions.patch("deployments", "kubeflow", RUNTIME, {"spec": {"replicas": 6}})
    platform.loop.run(60.0)
    assert len(platform.hetida.replicas) == len(runtimes(view)) == 6
    actions.patch("deployments", "kubeflow", RUNTIME, {"spec": {"replicas": 9}})
    assert len(platform.hetida.replicas) == 6  # the new ones have to start
    platform.loop.run(200.0)
    assert len(platform.hetida.replicas) == len(runtimes(view)) == 9


def test_a_deleted_runtime_is_replaced_and_misses_until_then() -> None:
    platform, view = shown("hetida-pattern-1")
    assert platform.hetida is not None
    actions = ClusterActions(view, lambda: None)
    actions.delete("pods", "kubeflow", view.deployments.pods[RUNTIME][0].name, 0)
    assert len(platform.hetida.replicas) == 2
    platform.loop.run(120.0)
    assert len(platform.hetida.replicas) == len(runtimes(view)) == 3
