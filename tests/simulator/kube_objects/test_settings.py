"""Settings of a component take effect in the model once the pods with them run."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.simulator.engine.calendar import Calendar
from harness.simulator.kube_api import ApiError
from harness.simulator.kube_objects.actions import ClusterActions
from harness.simulator.kube_objects.settings import limits, read
from harness.simulator.kube_objects.view import KubernetesView
from harness.simulator.platform import Platform
from harness.simulator.profile import Autoscaler, Profile, Quota
from tests.support.platforms import pool, profile, submit, upload

REAL = Path(__file__).parents[2] / "data" / "real"

Cluster = tuple[Platform, KubernetesView, ClusterActions]


def cluster(settings: Profile | None = None) -> Cluster:
    view = KubernetesView(Calendar(1_790_000_000 * 10**9))
    platform = Platform(settings or profile(pool(cpu=4.0, initial=2)), 1, view)
    view.follow(platform)
    platform.loop.run(1.0)
    return platform, view, ClusterActions(view, lambda: None)


def manifest(view: KubernetesView, plural: str, namespace: str, name: str) -> dict[str, Any]:
    (resource,) = (each for each in view.store.resources if each.plural == plural and each.listing is None)
    found = view.store.get(resource, namespace, name)
    assert found is not None
    return found.manifest(resource)


def give(of: Cluster, deployment: str, **more: list[Any]) -> None:
    """Patch the container of a deployment with more arguments or environment variables."""
    _, view, actions = of
    (container,) = manifest(view, "deployments", "kubeflow", deployment)["spec"]["template"]["spec"]["containers"]
    container |= {name: container.get(name, []) + added for name, added in more.items()}
    template = {"spec": {"containers": [container]}}
    actions.patch("deployments", "kubeflow", deployment, {"spec": {"template": template}})


def env(name: str, value: str) -> dict[str, list[Any]]:
    return {"env": [{"name": name, "value": value}]}


@pytest.mark.parametrize(
    ("deployment", "given", "read_off", "expected"),
    [
        ("ml-pipeline", env("CLIENTQPS", "77"), lambda it: it.server.bucket.rate, 77.0),
        ("ml-pipeline", env("CLIENTBURST", "78"), lambda it: it.server.bucket.burst, 78.0),
        ("ml-pipeline-persistenceagent", env("NUM_WORKERS", "9"), lambda it: it.agent.settings.workers, 9),
        (
            "ml-pipeline-persistenceagent",
            env("TTL_SECONDS_AFTER_WORKFLOW_FINISH", "600"),
            lambda it: it.controller.settings.ttl_s,
            600.0,
        ),
        ("workflow-controller", {"args": ["--qps=71"]}, lambda it: it.controller.client.rate, 71.0),
        ("workflow-controller", {"args": ["--burst", "72"]}, lambda it: it.controller.client.burst, 72.0),
        ("workflow-controller", {"args": ["--workflow-workers=5"]}, lambda it: it.controller.queue.workers, 5),
        (
            "workflow-controller",
            {"args": ["--pod-cleanup-workers=6"]},
            lambda it: it.controller.client.cleanup.senders,
            6,
        ),
        ("workflow-controller", env("DEFAULT_REQUEUE_TIME", "2s"), lambda it: it.controller.queue.requeue_s, 2.0),
    ],
)
def test_a_setting_holds_once_its_pod_runs(
    deployment: str, given: dict[str, list[Any]], read_off: Callable[[Platform], float], expected: float
) -> None:
    of = cluster()
    platform, view, _ = of
    before = read_off(platform)
    give(of, deployment, **given)
    assert read_off(platform) == before != expected
    platform.loop.run(120.0)
    assert view.deployments[deployment].rolled_out
    assert read_off(platform) == expected


def test_each_replica_has_a_client_of_its_own() -> None:
    of = cluster()
    platform, _, actions = of
    platform.server.bucket.rate = 5.0  # whatever held it there
    actions.patch("deployments", "kubeflow", "ml-pipeline", {"spec": {"replicas": 3}})
    assert platform.server.bucket.rate == 15.0
    give(of, "ml-pipeline", **env("CLIENTQPS", "20"))
    platform.loop.run(120.0)
    assert platform.server.bucket.rate == 60.0


@pytest.mark.parametrize("value", ["", "many", "0", "-1", "nan", "inf", "1e400"])
@pytest.mark.parametrize(
    ("deployment", "name"), [("ml-pipeline", "CLIENTQPS"), ("ml-pipeline-persistenceagent", "NUM_WORKERS")]
)
def test_settings_with_which_no_program_starts_are_refused(deployment: str, name: str, value: str) -> None:
    with pytest.raises(ApiError, match="cannot be handled"):
        give(cluster(), deployment, **env(name, value))


def test_values_that_are_no_durations_or_quantities_are_refused() -> None:
    of = cluster()
    with pytest.raises(ApiError, match="cannot be handled"):
        give(of, "workflow-controller", **env("DEFAULT_REQUEUE_TIME", "soon"))
    of[0].controller.quotas.shared.limit_to(Quota(cpu=4.0))
    with pytest.raises(ApiError, match="cannot be handled"):
        of[2].patch("resourcequotas", "kubeflow", "workflows", {"spec": {"hard": {"requests.cpu": "much"}}})
    with pytest.raises(ApiError, match="cannot be 0"):
        of[2].patch("resourcequotas", "kubeflow", "workflows", {"spec": {"hard": {"cpu": "0"}}})
    with pytest.raises(ApiError, match="must be strings"):
        of[2].patch("configmaps", "kubeflow", "workflow-controller-configmap", {"data": {"parallelism": 7}})
    with pytest.raises(ApiError, match="is forbidden"):
        of[2].patch("resourcequotas", "kubeflow", "workflows", {"spec": {"hard": {"limits.cpu": "4"}}})


@pytest.mark.parametrize(
    ("hard", "limits"),
    [
        ({"requests.cpu": "400"}, Quota(cpu=400.0, pods=50)),
        ({"requests.cpu": None}, Quota(pods=50)),
        ({"pods": 60, "requests.memory": "1Gi"}, Quota(cpu=4.0, memory=2.0**30, pods=60)),
    ],
)
def test_a_quota_keeps_the_limits_that_a_change_leaves_out(hard: dict[str, Any], limits: Quota) -> None:
    platform, view, actions = cluster(profile(pool(), quota=Quota(cpu=4.0, pods=50)))
    actions.patch("resourcequotas", "kubeflow", "workflows", {"spec": {"hard": hard}})
    assert platform.controller.quotas.shared.limits == limits
    shown = manifest(view, "resourcequotas", "kubeflow", "workflows")["spec"]["hard"]
    assert {name: value for name, value in shown.items() if name in hard} == {k: str(v) for k, v in hard.items() if v}


@pytest.mark.parametrize(
    "wrong",
    [{"args": "x"}, {"args": [1]}, {"env": "x"}, {"env": ["x"]}, {"env": [{}]}, {"env": [{"name": "A", "value": 1}]},
     {"env": [{"name": "A", "valueFrom": "B"}]}],
)  # fmt: skip
def test_a_container_of_wrong_types_is_refused(wrong: dict[str, Any]) -> None:
    _, view, actions = cluster()
    before = manifest(view, "deployments", "kubeflow", "mysql")
    (container,) = manifest(view, "deployments", "kubeflow", "mysql")["spec"]["template"]["spec"]["containers"]
    patch = {"spec": {"template": {"spec": {"containers": [container | wrong]}}}}
    with pytest.raises(ApiError, match="must be a list"):
        actions.patch("deployments", "kubeflow", "mysql", patch)
    assert manifest(view, "deployments", "kubeflow", "mysql") == before


def test_other_settings_mean_nothing() -> None:
    assert read("ml-pipeline", {"args": ["--qps=1", "-v"], "env": [{"name": "LOG_LEVEL", "value": "debug"}]}) == []
    assert read("mysql", {}) == []


@pytest.mark.parametrize(
    ("data", "most"),
    [({}, (0, 0)), ({"parallelism": "10"}, (10, 0)), ({"parallelism": "10", "namespaceParallelism": "4"}, (10, 4)),
     ({"parallelism": "0", "namespaceParallelism": "4"}, (0, 4))],
)  # fmt: skip
def test_the_limits_of_workflows_are_read_from_the_configuration(data: dict[str, str], most: tuple[int, int]) -> None:
    assert limits(data) == most


def test_the_controllers_configuration_shows_every_change_of_the_limit() -> None:
    platform, view, actions = cluster()

    def shown() -> tuple[str | None, str | None]:
        data = manifest(view, "configmaps", "kubeflow", "workflow-controller-configmap")["data"]
        return data.get("parallelism"), data.get("namespaceParallelism")

    def in_effect() -> tuple[int, int]:
        return platform.controller.throttler.most, platform.controller.throttler.most_of_each

    assert shown() == (None, None)
    platform.controller.limit_to(10, 4)
    assert (shown(), in_effect()) == (("10", "4"), (10, 4))
    actions.patch("configmaps", "kubeflow", "workflow-controller-configmap", {"data": {"parallelism": None}})
    assert (shown(), in_effect()) == ((None, "4"), (0, 4))
    with pytest.raises(ApiError, match=r"can't change data\.executor"):
        actions.patch("configmaps", "kubeflow", "workflow-controller-configmap", {"data": {"executor": ""}})


def test_the_autoscalers_status_shows_the_maximum_of_nodes() -> None:
    of = cluster(profile(pool(cpu=4.0, initial=2, max=6), autoscaler=Autoscaler()))
    platform, view, _ = of
    platform.cluster.scale_pool(platform.profile.pools[0], 3)
    status = yaml.safe_load(
        manifest(view, "configmaps", "kube-system", "cluster-autoscaler-status")["data"]["status"]
    )  # fmt: skip
    (group,) = status["nodeGroups"]
    assert (group["health"]["cloudProviderTarget"], group["health"]["maxSize"]) == (3, 6)
    assert group["health"]["nodeCounts"]["registered"] == {"total": 3, "ready": 2, "notStarted": 1}
    assert status["clusterWide"]["scaleUp"] == group["scaleUp"] == {"status": "InProgress"}


def test_a_postponed_pipeline_run_shows_as_any_workflow_that_argo_holds() -> None:
    held = json.loads((REAL / "argo" / "plain-controller-parallelism-2.json").read_text())["held"]
    platform, view, _ = cluster(profile(controller=replace(profile().controller, namespace_parallelism=1)))
    platform.workflow_watchers.append(view.workflow_changed)
    _, second = submit(platform, upload(platform), 2)
    platform.loop.run(2.0)
    assert second.workflow is not None
    shown = manifest(view, "workflows", second.workflow.namespace, second.workflow.name)
    assert shown["status"] == held["status"]
    assert held["metadata"]["labels"].items() - {("facts", "yes")} <= shown["metadata"]["labels"].items()
    assert "workflows.argoproj.io/pod-name-format" not in shown["metadata"]["annotations"]
