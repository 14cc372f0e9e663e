"""The installation's deployments: pods that go are replaced, and only a node can start them."""

from harness.simulator.cluster import Pod
from harness.simulator.kfp.view import Calendar
from harness.simulator.kube.actions import ClusterActions
from harness.simulator.kube.installation import render_deployment
from harness.simulator.kube.nodes import LEASES
from harness.simulator.kube.view import KubernetesView
from harness.simulator.platform import Platform
from tests.simulator.platforms import pool, profile

ORIGIN_AT = 1_790_000_000 * 10**9


def shown(nodes: int) -> tuple[Platform, KubernetesView, ClusterActions]:
    view = KubernetesView(Calendar(ORIGIN_AT))
    platform = Platform(profile(pool(cpu=4.0, initial=nodes)), 1, view)
    view.follow(platform)
    platform.loop.run(1.0)
    return platform, view, ClusterActions(view, lambda: None)


def mysql(view: KubernetesView) -> Pod:
    (pod,) = view.replicas["mysql"]
    return pod


def ready(view: KubernetesView) -> int:
    status = render_deployment(view.deployments["mysql"], view.calendar.stamp)["status"]
    return int(status.get("readyReplicas", 0))


def drain(platform: Platform, actions: ClusterActions, node: str) -> None:
    platform.cluster.cordon(platform.cluster.nodes[node], cordoned=True)
    for name in list(platform.cluster.nodes[node].pods):
        actions.evict("kubeflow", name)
    platform.loop.run(platform.loop.now + 60)


def test_the_installation_runs_from_the_start() -> None:
    _, view, _ = shown(1)
    assert ready(view) == 1
    assert all(pod.started == 0.0 for pods in view.replicas.values() for pod in pods)


def test_a_drained_nodes_pods_are_replaced_on_another() -> None:
    platform, view, actions = shown(2)
    before = mysql(view)
    assert before.node is not None
    drain(platform, actions, before.node.name)
    after = mysql(view)
    assert after.name != before.name
    assert after.node is not None
    assert after.node.name != before.node.name
    assert ready(view) == 1
    assert before.name not in platform.cluster.pods


def test_without_another_node_the_replacement_is_pending() -> None:
    platform, view, actions = shown(1)
    node = mysql(view).node
    assert node is not None
    drain(platform, actions, node.name)
    pod = mysql(view)
    assert (pod.phase, pod.node, ready(view)) == ("Pending", None, 0)
    assert pod.unschedulable is not None
    platform.cluster.cordon(node, cordoned=False)
    platform.loop.run(platform.loop.now + 60)
    assert (pod.phase, ready(view)) == ("Running", 1)


def test_a_node_that_is_lost_takes_no_deployment_with_it() -> None:
    platform, view, _ = shown(2)
    node = mysql(view).node
    assert node is not None
    platform.cluster.remove_node(node)
    platform.loop.run(platform.loop.now + 60)
    assert all(len(pods) == 1 and pods[0].started is not None for pods in view.replicas.values())


def test_fewer_replicas_are_not_made_again() -> None:
    platform, view, _ = shown(1)
    view.scale("mysql", 3)
    platform.loop.run(platform.loop.now + 60)
    assert ready(view) == 3
    view.scale("mysql", 1)
    platform.loop.run(platform.loop.now + 60)
    assert (len(view.replicas["mysql"]), ready(view)) == (1, 1)


def test_every_node_has_a_lease() -> None:
    platform, view, _ = shown(3)
    lease = next(each for each in view.store.resources if each.plural == "leases")
    for name in platform.cluster.nodes:
        found = view.store.get(lease, LEASES, name)
        assert found is not None
        assert lease.render(found.snapshot)["spec"]["holderIdentity"] == name
