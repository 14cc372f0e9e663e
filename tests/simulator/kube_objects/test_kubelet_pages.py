"""What kubelets tell of CPU and memory: cumulative, by their own names, and as metrics-server tells it."""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import pytest

from harness.collectors.metrics.profiles_file import load
from harness.collectors.metrics.scraping import Scrape, parse, samples
from harness.model.phases import POD_CFS_PERIODS, POD_CFS_THROTTLED
from harness.simulator.cluster import Node, Pod
from harness.simulator.engine.calendar import Calendar
from harness.simulator.engine.distributions import fixed
from harness.simulator.kube_objects.actions import ClusterActions
from harness.simulator.kube_objects.proxy import Kubelet
from harness.simulator.kube_objects.usage import render_node, render_pod
from harness.simulator.kube_objects.view import KubernetesView
from harness.simulator.platform import Platform
from harness.simulator.profile import ArtifactStore, Controller, Step
from harness.simulator.workflows.launcher import Launch
from tests.support.platforms import pool, profile, submit, upload

SLOW = {
    "step": Step(duration=fixed(20.0), output=fixed(1e6), cpu=fixed(0.8), memory=fixed(2e8)),
    "controller": Controller(qps=1e6, burst=10**6, operation_s=0.0, requeue_s=0.0, driver=fixed(3.0)),
    "store": ArtifactStore(request_s=4.0, bytes_per_s=1e15, stream_bytes_per_s=1e15),  # after main, and before it
}


def shown(**more: Any) -> tuple[Platform, KubernetesView, Node]:
    """One node on which three runs are under way."""
    view = KubernetesView(Calendar(1_790_000_000 * 10**9))
    platform = Platform(profile(pool(cpu=4.0), **(SLOW | more)), 1, view)
    view.follow(platform)
    submit(platform, upload(platform), 3)
    (node,) = platform.cluster.nodes.values()
    return platform, view, node


def series(text: str, name: str) -> Mapping[tuple[tuple[str, str], ...], float]:
    return parse(text).get(name, {})


def test_counters_grow_by_the_usage_in_metrics_server() -> None:
    platform, view, node = shown()
    seen = 0
    for second in range(1, 120):
        platform.loop.run(second)
        before = {pod.name: used for pod, used in view.meter.pods(node)}
        whole, count = view.meter.node(node), platform.loop.scheduled
        platform.loop.run(second + 0.5)
        if platform.loop.scheduled != count:
            continue  # something happened in between
        for pod, used in view.meter.pods(node):
            assert used.core_s - before[pod.name].core_s == pytest.approx(0.5 * before[pod.name].cpu)
            seen += used.cpu > 0.5
        if whole.cpu < 4:
            assert view.meter.node(node).core_s - whole.core_s == pytest.approx(0.5 * whole.cpu)
    assert seen > 20


def test_no_counter_ever_falls() -> None:
    platform, view, node = shown()
    looks = []
    for look in range(1, 240):
        platform.loop.run(look / 2)
        if look == 120:
            ClusterActions(view, lambda: None).delete("pods", "kubeflow", view.deployments.pods["mysql"][0].name, None)
        looks.append(parse(Kubelet(view, node).cadvisor()))
    names = [name for name in looks[-1] if name.endswith("_total")]
    assert "container_cpu_usage_seconds_total" in names
    for earlier, later in pairwise(looks):
        for name in names:
            for labels, value in earlier[name].items():
                assert later[name].get(labels, value) >= value - 1e-9


def test_a_nodes_counter_is_the_sum_of_all_that_ever_ran_on_it() -> None:
    platform, view, node = shown()
    platform.loop.run(300.0)
    steps, drivers = 9 * 20.0 * 0.8, 12 * 3.0 * 0.05
    waiting = sum(0.005 * (pod.finished - pod.started) for pod in platform.cluster.pods.values() if pod.role)  # type: ignore[operator]
    standing = sum(pod.usage_cpu * 300.0 for pods in view.deployments.pods.values() for pod in pods)
    expected = steps + drivers + waiting + standing + 0.08 * 300.0
    assert view.meter.node(node).core_s == pytest.approx(expected)


def test_an_ended_container_is_not_reported_but_its_usage_stays_with_the_pod() -> None:
    platform, view, node = shown()
    storing: list[Pod] = []
    while not storing and platform.loop.now < 300:
        platform.loop.run(platform.loop.now + 0.5)
        storing = [pod for pod in node.pods.values() if pod.role == "executor" and pod.main_ended is not None]
    text, name = Kubelet(view, node).cadvisor(), storing[0].name
    used = {
        each["container"]: value
        for labels, value in series(text, "container_cpu_usage_seconds_total").items()
        if (each := dict(labels))["pod"] == name
    }
    assert used.keys() == {"", "wait"}
    assert used[""] > 20.0 * 0.8


def test_the_pages_have_the_kubelets_labels_and_help_texts() -> None:
    platform, view, node = shown()
    platform.loop.run(15.0)
    text = Kubelet(view, node).cadvisor()
    by_level = {
        (labels["container"] != "", labels["pod"] != "", labels["id"] == "/")
        for labels in map(dict, series(text, "container_memory_working_set_bytes"))
    }
    assert by_level == {(False, False, True), (False, True, False), (True, True, False)}
    one = next(labels for labels in map(dict, series(text, "container_cpu_usage_seconds_total")) if labels["container"])
    assert one.keys() == {"container", "cpu", "id", "image", "name", "namespace", "pod"}
    assert dict(next(iter(series(text, "machine_cpu_cores")))).keys() == {"boot_id", "machine_id", "system_uuid"}


def test_the_profile_of_containers_finds_the_platforms_own() -> None:
    platform, view, node = shown()
    scrapes = []
    for at in (10.0, 70.0):
        platform.loop.run(at)
        scrapes.append(Scrape(view.calendar.ns(at), parse(Kubelet(view, node).cadvisor())))
    metrics = {metric.name: metric for metric in load("containers", ("kubeflow",)).metrics}
    cores = {
        dict(each.labels)["pod"]: each.value for each in samples(metrics["platform_cpu_cores"], *reversed(scrapes))
    }
    used = {pod.name: used.cpu for pod, used in view.meter.pods(node) if pod.name.startswith("mysql")}
    assert used.items() <= {name: pytest.approx(value) for name, value in cores.items()}.items()
    memory = samples(metrics["platform_memory_bytes"], scrapes[1], None)
    assert {dict(each.labels)["pod"] for each in memory} == cores.keys()


def test_the_profile_of_containers_finds_throttled_steps_with_a_limit() -> None:
    platform, view, node = shown()
    scrapes = []
    for at in (10.0, 14.0):
        platform.loop.run(at)
        for pod in node.pods.values():
            if pod.role == "executor":
                pod.limit_cpu = 800
                assert isinstance(pod.launch, Launch)
                pod.launch.throttled = True
        scrapes.append(Scrape(view.calendar.ns(at), parse(Kubelet(view, node).cadvisor())))
    metrics = {metric.name: metric for metric in load("containers", ("elsewhere",)).metrics}
    computing = {pod.name for pod, used in view.meter.pods(node) if pod.role == "executor" and used.cpu > 0.1}
    for name in (POD_CFS_PERIODS, POD_CFS_THROTTLED):
        found = {dict(each.labels)["pod"]: each.value for each in samples(metrics[name], *reversed(scrapes))}
        assert {pod: rate for pod, rate in found.items() if rate} == dict.fromkeys(
            computing, pytest.approx(10.0, rel=0.1)
        )


def test_metrics_server_shows_the_labels_and_containers_of_a_pod() -> None:
    platform, view, node = shown()
    platform.loop.run(15.0)
    computing = [used for pod, used in view.meter.pods(node) if pod.role == "executor"]
    rendered = render_pod(computing[0], view.calendar)
    assert [each["name"] for each in rendered["containers"]] == ["main", "wait"]
    assert rendered["metadata"]["labels"]["workflows.argoproj.io/workflow"]
    assert render_node(view.meter.node(node), view.calendar)["metadata"]["labels"]["agentpool"] == "pool"
