"""The installation's deployments: pods that go are replaced, and only a node can start them."""

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from harness.model.errors import ConfigError
from harness.model.units import parse_quantity
from harness.simulator.cluster import Pod
from harness.simulator.engine.calendar import Calendar
from harness.simulator.engine.distributions import fixed
from harness.simulator.faults import inject, parse_fault
from harness.simulator.kube_objects.actions import ClusterActions
from harness.simulator.kube_objects.deployments import render_deployment
from harness.simulator.kube_objects.pod_status import render_status
from harness.simulator.kube_objects.snapshots import pod_snapshot
from harness.simulator.kube_objects.view import KubernetesView
from harness.simulator.platform import Platform
from harness.simulator.profile import Amounts, ClusterQueue, Step
from tests.support.platforms import pool, profile, submit, upload
from tests.support.recorded_workflows import recorded

ORIGIN_AT = 1_790_000_000 * 10**9


def shown(nodes: int) -> tuple[Platform, KubernetesView, ClusterActions]:
    view = KubernetesView(Calendar(ORIGIN_AT))
    platform = Platform(profile(pool(cpu=4.0, initial=nodes)), 1, view)
    view.follow(platform)
    platform.loop.run(1.0)
    return platform, view, ClusterActions(view, lambda: None)


def mysql(view: KubernetesView) -> Pod:
    (pod,) = view.deployments.pods["mysql"]
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
    assert all(pod.started == 0.0 for pods in view.deployments.pods.values() for pod in pods)


def test_an_evicted_pod_says_so_in_its_status_and_a_deleted_one_does_not() -> None:
    _, view, actions = shown(1)
    evicted, deleted = mysql(view), view.deployments.pods["workflow-controller"][0]
    actions.evict("kubeflow", evicted.name)
    actions.delete("pods", "kubeflow", deleted.name, None)
    said = [
        [each["reason"] for each in render_status(pod_snapshot(pod, ""), view.calendar.stamp)["conditions"]
         if each["type"] == "DisruptionTarget"]
        for pod in (evicted, deleted)
    ]  # fmt: skip
    assert said == [["EvictionByEvictionAPI"], []]


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
    assert all(len(pods) == 1 and pods[0].started is not None for pods in view.deployments.pods.values())


def test_fewer_replicas_are_not_made_again() -> None:
    platform, view, _ = shown(1)
    view.deployments.scale("mysql", 3)
    platform.loop.run(platform.loop.now + 60)
    assert ready(view) == 3
    view.deployments.scale("mysql", 1)
    platform.loop.run(platform.loop.now + 60)
    assert (len(view.deployments.pods["mysql"]), ready(view)) == (1, 1)


# --- events -----------------------------------------------------------------------------------------------------------


def test_argo_s_events_come_when_its_client_has_sent_them_and_tell_when_they_happened() -> None:
    view = KubernetesView(Calendar(ORIGIN_AT))
    slow = replace(profile().controller, qps=5.0, burst=5)
    platform = Platform(profile(controller=slow), 1, view)
    view.follow(platform)
    platform.workflow_watchers.append(view.workflow_changed)
    (run,) = submit(platform, upload(platform))
    while run.state != "SUCCEEDED":
        platform.loop.run(platform.loop.now + 0.1)
    over_s = platform.loop.now

    def told() -> list[dict[str, Any]]:
        return [each for each in objects(view, "events") if each["involvedObject"]["kind"] == "Workflow"]

    assert "WorkflowSucceeded" not in {each["reason"] for each in told()}
    lag_s = platform.controller.client.events.lag_s
    assert lag_s > 2.0
    platform.loop.run(over_s + 2 * lag_s)
    (last,) = (each for each in told() if each["reason"] == "WorkflowSucceeded")
    happened, written = (
        datetime.fromisoformat(each) for each in (last["lastTimestamp"], last["metadata"]["creationTimestamp"])
    )
    assert (happened.timestamp() - ORIGIN_AT / 1e9) == pytest.approx(over_s, abs=1.1)
    assert (written - happened).total_seconds() == pytest.approx(lag_s, abs=2.1)


def test_a_lost_node_shows_as_a_real_one() -> None:
    platform, view, _ = shown(2)
    node = mysql(view).node
    assert node is not None
    platform.cluster.lose_node(node)
    platform.loop.run(platform.loop.now + 42.0)
    (lost,) = (each for each in objects(view, "nodes") if each["metadata"]["name"] == node.name)
    assert {(each["status"], each["reason"]) for each in lost["status"]["conditions"]} == {
        ("Unknown", "NodeStatusUnknown")
    }
    assert [each["effect"] for each in lost["spec"]["taints"]] == ["NoSchedule", "NoExecute"]
    (pod,) = (each for each in objects(view, "pods") if each["metadata"]["name"].startswith("mysql"))
    conditions = {each["type"]: each["status"] for each in pod["status"]["conditions"]}
    assert (conditions["Ready"], conditions["ContainersReady"]) == ("False", "True")
    assert not view.answers("kubeflow", "mysql")
    platform.loop.run(platform.loop.now + 80.0)
    seen = {each["reason"] for each in objects(view, "events")}
    assert seen >= {"NodeNotReady", "DeletingNode", "RemovingNode"}
    assert node.name not in {each["metadata"]["name"] for each in objects(view, "nodes")}
    assert view.answers("kubeflow", "mysql")


def test_the_last_state_of_a_lost_pod_is_that_of_a_recorded_one() -> None:
    """Its containers are shown as running; only the phase and a condition tell of its end."""
    platform, view, _ = shown(2)
    before = mysql(view)
    assert before.node is not None
    platform.cluster.lose_node(before.node)
    platform.loop.run(platform.loop.now + 120.0)
    pods = next(each for each in view.store.resources if each.plural == "pods" and each.listing is None)
    changes = view.store.changes("pods", 5_000, 10_000)
    (last,) = (each.after for each in changes if each.deleted and each.after.name == before.name)
    status, theirs = pods.render(last.snapshot)["status"], _recorded_lost_pod()["status"]
    assert status["phase"] == theirs["phase"] == "Failed"
    assert {*status["containerStatuses"][0]["state"]} == {*theirs["containerStatuses"][0]["state"]} == {"running"}
    ours, recorded = (
        {(each["type"], each["status"], each.get("reason"), each.get("message")) for each in one["conditions"]}
        for one in (status, theirs)
    )
    assert {each for each in ours if each[0] == "DisruptionTarget"} == {
        each for each in recorded if each[0] == "DisruptionTarget"
    }


def _recorded_lost_pod() -> dict[str, Any]:
    pods = recorded("node_gone")["pods"]
    (pod,) = (each["states"][-1] for name, each in pods.items() if "-impl-" in name and each["phase"] == "Failed")
    return dict(pod)


# --- quotas and priorities --------------------------------------------------------------------------------------------


def objects(view: KubernetesView, plural: str) -> list[dict[str, Any]]:
    resource = next(each for each in view.store.resources if each.plural == plural and each.listing is None)
    return [resource.render(each.snapshot) for each in view.store.objects(resource)]


def test_a_quota_becomes_an_object_that_shows_its_use() -> None:
    platform, view, _ = shown(1)
    assert objects(view, "resourcequotas") == []
    version = upload(platform)
    submit(platform, version, 3)
    plan = parse_fault("quota@2s:2")
    assert plan is not None
    inject(platform, plan)
    used = []
    while platform.loop.pending and platform.loop.now < 60:
        platform.loop.run(platform.loop.next_at)
        for quota in objects(view, "resourcequotas"):
            assert quota["spec"]["hard"] == quota["status"]["hard"] == {"requests.cpu": "2"}
            asked = sum(pod.shape.cpu for pod in platform.cluster.pods.values() if pod.role and not pod.over)
            assert parse_quantity(quota["status"]["used"]["requests.cpu"]) == pytest.approx(asked / 1000)
            assert quota["metadata"]["creationTimestamp"] == view.calendar.stamp(2.0)
            used.append(asked)
    assert max(used) > 0


def test_pods_name_their_priority_class() -> None:
    view = KubernetesView(Calendar(ORIGIN_AT))
    urgent = Step(duration=fixed(1.0), output=fixed(0.0), priority_class="urgent")
    platform = Platform(profile(step=urgent, priority_classes={"urgent": 500}), 1, view)
    view.follow(platform)
    submit(platform, upload(platform))
    platform.loop.run(2.0)
    values = {"system-cluster-critical": 2_000_000_000, "urgent": 500}
    pods = {each["metadata"]["name"]: each["spec"] for each in objects(view, "pods")}
    for pod in platform.cluster.pods.values():
        spec = pods[pod.name]
        named = "urgent" if pod.role == "executor" else None if pod.role else spec.get("priorityClassName")
        assert spec.get("priorityClassName") == named
        assert spec["priority"] == values.get(named or "", 0)


def test_a_step_can_only_have_a_class_that_there_is() -> None:
    with pytest.raises(ConfigError, match=r"steps\[0\].priority_class: unknown class 'urgent'"):
        Platform(profile(step=Step(priority_class="urgent")), 1)


# --- node pools -------------------------------------------------------------------------------------------------------


def test_a_node_pool_is_scaled_as_cluster_apis_machine_deployments_are() -> None:
    platform, view, actions = shown(2)
    (pool_before,) = objects(view, "machinedeployments")
    assert (pool_before["spec"]["replicas"], pool_before["status"]["readyReplicas"]) == (2, 2)
    actions.patch("machinedeployments", "kube-system", "pool", {"spec": {"replicas": 5}})
    (growing,) = objects(view, "machinedeployments")
    assert (growing["spec"]["replicas"], growing["status"]["readyReplicas"]) == (5, 2)
    assert growing["status"]["phase"] == "ScalingUp"
    platform.loop.run(platform.loop.now + 120)
    (grown,) = objects(view, "machinedeployments")
    assert (grown["status"]["readyReplicas"], grown["status"]["phase"]) == (5, "Running")
    assert len(objects(view, "nodes")) == 5
    actions.patch("machinedeployments", "kube-system", "pool", {"spec": {"replicas": 1}})
    platform.loop.run(platform.loop.now + 120)
    assert len(objects(view, "nodes")) == 1
    assert all(pods[0].started is not None for pods in view.deployments.pods.values())  # moved to the node that is left


def test_a_pod_that_was_deleted_after_its_end_stays_away_when_its_workflow_ends() -> None:
    platform, view, actions = shown(1)
    run = submit(platform, upload(platform))[0]
    platform.loop.run(platform.loop.now + 1.5)  # the first step is over, the second is not
    over = next(pod for pod in platform.cluster.pods.values() if pod.over and pod.task == "prepare")
    actions.delete("pods", over.namespace, over.name, None)
    platform.loop.run(platform.loop.now + 10)
    assert run.state == "SUCCEEDED"
    assert ("pods", over.namespace, over.name) not in view
    assert over.name not in platform.cluster.pods


def test_a_pod_that_waits_for_its_queue_is_gated_and_later_says_what_nodes_lack() -> None:
    view = KubernetesView(Calendar(ORIGIN_AT))
    queue = ClusterQueue("all", ("kubeflow",), Amounts(cpu=0.1))  # one driver at a time
    usual = profile(pool(cpu=4.0), queues=(queue,))
    slow = replace(usual, controller=replace(usual.controller, driver=fixed(5.0)))
    platform = Platform(slow, 1, view)
    view.follow(platform)
    submit(platform, upload(platform), count=2)
    platform.loop.run(1.0)
    first, second = (pod for pod in platform.cluster.pods.values() if pod.role == "dag-driver")
    assert first.node is not None

    def shows() -> tuple[Any, dict[str, Any]]:
        (pod,) = [each for each in objects(view, "pods") if each["metadata"]["name"] == second.name]
        (condition,) = pod["status"]["conditions"]
        return pod["spec"].get("schedulingGates"), condition

    gates, condition = shows()
    assert gates == [{"name": "kueue.x-k8s.io/admission"}]
    assert (condition["type"], condition["status"], condition["reason"]) == ("PodScheduled", "False", "SchedulingGated")
    assert condition["message"] == "Scheduling is blocked due to non-empty scheduling gates"
    platform.cluster.cordon(first.node, cordoned=True)
    platform.loop.run(60.0)
    gates, condition = shows()
    assert gates is None
    assert condition["reason"] == "Unschedulable"
    assert condition["message"].startswith("0/1 nodes are available: 1 node(s) were unschedulable")
