"""How pods end, make way and wait, as a real kube-apiserver and kube-scheduler show it and as ours do.

The same is done to both; compared is what a client sees of it. A real node has no kubelet here: the test plays it,
where the simulated one acts by itself.
"""

import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import pytest
import urllib3
from kubernetes import client, watch

from harness.simulator.cluster import Pod, Shape
from harness.simulator.engine.calendar import Calendar
from harness.simulator.kube_objects.actions import ClusterActions
from harness.simulator.kube_objects.view import KubernetesView
from harness.simulator.platform import Platform
from harness.simulator.profile import Scheduler, Taint
from tests.support.platforms import pool, profile
from tests.support.real_kubernetes import RealCluster

NAMESPACE = "lives"
CLASSES = {"lives-low": 10, "lives-middle": 20, "lives-high": 30}
Trace = list[tuple[Any, ...]]
_numbers = itertools.count()


class Ours:
    """The simulated platform; time passes when the test says so."""

    def __init__(self, cores: int) -> None:
        self.view = KubernetesView(Calendar(1_790_000_000 * 10**9))
        mode = {"kubernetes.azure.com/mode": "system"}  # where the installation is
        system = pool("system", labels=mode, taints=(Taint("CriticalAddonsOnly", "true"),))
        its = profile(
            pool(cpu=cores), system, scheduler=Scheduler(pod_s=0.0), priority_classes=CLASSES, namespace=NAMESPACE
        )
        self.platform = Platform(its, 1, self.view)
        self.view.follow(self.platform)
        self.actions = ClusterActions(self.view, lambda: None)
        self.pods: dict[str, Pod] = {}

    def create(self, name: str, cores: int = 1, priority: str = "") -> None:
        shape = Shape(cores * 1000, priority=CLASSES.get(priority, 0))
        self.pods[name] = Pod(name, NAMESPACE, shape, ("image",))
        self.platform.cluster.create(self.pods[name])
        self.settle()

    def settle(self, seconds: float = 0.001) -> None:  # images are pulled at once, but for microseconds
        self.platform.loop.run(self.platform.loop.now + seconds)

    def run(self, name: str) -> None:
        assert self.pods[name].phase == "Running"

    def finish(self, name: str) -> None:
        self.platform.cluster.kubelet.finish(self.pods[name])

    def delete(self, name: str, grace_s: float | None = None) -> None:
        self.actions.delete("pods", NAMESPACE, name, grace_s)

    def evict(self, name: str, grace_s: float | None = None) -> None:
        self.actions.evict(NAMESPACE, name, grace_s)

    def kubelet_ends(self, name: str) -> None:
        """It does so by itself; `termination_s` is 0."""
        del name
        self.settle()

    @contextmanager
    def watched(self, name: str) -> Iterator[Trace]:
        trace: Trace = []
        begun = self.view.store.version
        yield trace
        pods = next(each for each in self.view.store.resources if each.plural == "pods")
        for change in self.view.store.changes("pods", begun, 1000):
            if change.after.name == name:
                kind = "DELETED" if change.deleted else "MODIFIED" if change.before is not None else "ADDED"
                trace.append(step(kind, pods.render(change.after.snapshot)))

    def pod(self, name: str) -> dict[str, Any] | None:
        pods = next(each for each in self.view.store.resources if each.plural == "pods")
        found = self.view.store.get(pods, NAMESPACE, name)
        return pods.render(found.snapshot) if found is not None else None

    def events(self, name: str) -> list[dict[str, Any]]:
        events = next(each for each in self.view.store.resources if each.plural == "events")
        rendered = (events.render(each.snapshot) for each in self.view.store.objects(events))
        return [each for each in rendered if each["involvedObject"]["name"] == name]

    def until(self, met: Callable[[], bool]) -> None:
        self.settle(60.0)
        assert met()


class Real:
    """The real one; `until` watches."""

    def __init__(self, cluster: RealCluster, cores: int) -> None:
        self.cluster, self.label = cluster, f"lives-{next(_numbers)}"
        self.core = client.CoreV1Api(cluster.client())
        cluster.add_node(self.label, cpu=str(cores), labels={"lives": self.label})

    def create(self, name: str, cores: int = 1, priority: str = "") -> None:
        container = {"name": "main", "image": "image", "resources": {"requests": {"cpu": str(cores)}}}
        spec = {"containers": [container], "nodeSelector": {"lives": self.label}, "restartPolicy": "Never"}
        more = {"priorityClassName": priority} if priority else {}
        self.core.create_namespaced_pod(NAMESPACE, {"metadata": {"name": self.named(name)}, "spec": {**spec, **more}})
        self.until(lambda: bool(self.conditions(name)))

    def named(self, name: str) -> str:
        return f"{self.label}-{name}"

    def conditions(self, name: str) -> list[dict[str, Any]]:
        pod = self.pod(name)
        return (pod or {}).get("status", {}).get("conditions") or []

    def run(self, name: str) -> None:
        self.cluster.run_pod(NAMESPACE, self.named(name))

    def finish(self, name: str) -> None:
        self.cluster.finish_pod(NAMESPACE, self.named(name))

    def delete(self, name: str, grace_s: float | None = None) -> None:
        options = {} if grace_s is None else {"grace_period_seconds": int(grace_s)}
        self.core.delete_namespaced_pod(self.named(name), NAMESPACE, **options)

    def evict(self, name: str, grace_s: float | None = None) -> None:
        body = {"apiVersion": "policy/v1beta1", "kind": "Eviction", "metadata": {"name": self.named(name)}}
        if grace_s is not None:
            body["deleteOptions"] = {"gracePeriodSeconds": int(grace_s)}
        self.core.create_namespaced_pod_eviction(self.named(name), NAMESPACE, body)

    def kubelet_ends(self, name: str) -> None:
        self.core.delete_namespaced_pod(self.named(name), NAMESPACE, grace_period_seconds=0)

    @contextmanager
    def watched(self, name: str) -> Iterator[Trace]:
        trace: Trace = []
        begun = self.core.list_namespaced_pod(NAMESPACE).metadata.resource_version
        yield trace
        selector = f"metadata.name={self.named(name)}"
        for event in watch.Watch().stream(
            self.core.list_namespaced_pod, NAMESPACE, field_selector=selector, resource_version=begun, timeout_seconds=9
        ):
            trace.append(step(event["type"], event["raw_object"]))
            if event["type"] == "DELETED":
                break

    def pod(self, name: str) -> dict[str, Any] | None:
        try:
            answer = self.core.read_namespaced_pod(self.named(name), NAMESPACE, _preload_content=False)
        except client.ApiException as error:
            if error.status == 404:
                return None
            raise
        found: dict[str, Any] = json.loads(answer.data)
        return found

    def events(self, name: str) -> list[dict[str, Any]]:
        selector = f"involvedObject.name={self.named(name)}"
        answer = self.core.list_namespaced_event(NAMESPACE, field_selector=selector, _preload_content=False)
        found: list[dict[str, Any]] = json.loads(answer.data)["items"]
        return found

    def until(self, met: Callable[[], bool]) -> None:
        """Look again whenever something happens to a pod or an event."""
        http = urllib3.PoolManager(ca_certs=str(self.cluster.ca), retries=False, timeout=30.0)
        headers = {"Authorization": f"Bearer {self.cluster.token}"}
        url = f"{self.cluster.url}/api/v1/namespaces/{NAMESPACE}/pods?watch=1&timeoutSeconds=2"
        for _ in range(15):
            answer = http.request("GET", url, headers=headers, preload_content=False)
            for _line in answer.stream():
                if met():
                    answer.close()
                    return
            if met():
                return
        raise AssertionError("it did not happen")


Side = Ours | Real


def step(kind: str, pod: Mapping[str, Any]) -> tuple[Any, ...]:
    """What a watching client sees of a pod's end."""
    metadata = pod["metadata"]
    return kind, "deletionTimestamp" in metadata, metadata.get("deletionGracePeriodSeconds")


@pytest.fixture(scope="module")
def real(real_cluster: RealCluster) -> RealCluster:
    if not real_cluster.schedules:
        pytest.skip("there is no kube-scheduler")
    core = client.CoreV1Api(real_cluster.client())
    core.create_namespace({"metadata": {"name": NAMESPACE}})
    scheduling = client.SchedulingV1Api(real_cluster.client())
    for name, value in CLASSES.items():
        scheduling.create_priority_class({"metadata": {"name": name}, "value": value})
    return real_cluster


def both(real: RealCluster, cores: int, script: Callable[[Side], Any]) -> tuple[Any, Any]:
    """What the script sees of ours, and of the real one."""
    return script(Ours(cores)), script(Real(real, cores))


# --- deletion ---------------------------------------------------------------------------------------------------------


Acts = tuple[tuple[Any, ...], ...]  # methods of a side, with what they take besides the pod's name
RUNS: Acts = (("create",), ("run",))
# What is done to a pod before anybody watches, and then.
ENDS: dict[str, tuple[Acts, Acts]] = {
    "running": (RUNS, (("delete",), ("kubelet_ends",))),
    "at once": (RUNS, (("delete", 0),)),
    "pending": ((("create", 9),), (("delete",),)),
    "completed": ((*RUNS, ("finish",)), (("delete",),)),
    # More time than it has already holds nothing up.
    "hurried": (RUNS, (("delete", 40), ("delete", 600), ("delete", 5), ("kubelet_ends",))),
    "evicted": (RUNS, (("evict", 7), ("kubelet_ends",))),
    "evicted with its own grace": (RUNS, (("evict",), ("kubelet_ends",))),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_client_sees_a_pod_end_in_the_same_steps(real: RealCluster, end: str) -> None:
    def ended(side: Side) -> Trace:
        before, acts = ENDS[end]
        for name, *arguments in before:
            getattr(side, name)("a", *arguments)
        with side.watched("a") as trace:
            for name, *arguments in acts:
                getattr(side, name)("a", *arguments)
        return trace

    ours, theirs = both(real, 2, ended)
    if end.startswith("evicted"):  # a real one sets the condition DisruptionTarget first
        assert theirs.pop(0) == ("MODIFIED", False, None)
    assert ours == theirs
    assert theirs[-1][0] == "DELETED"


# --- preemption and back-off ------------------------------------------------------------------------------------------


def preempted(side: Side) -> dict[str, Any]:
    for name, priority in (("older", "lives-low"), ("younger", "lives-low"), ("middle", "lives-middle")):
        side.create(name, priority=priority)
        side.run(name)
    side.create("high", priority="lives-high")
    side.until(lambda: bool((side.pod("high") or {"status": {}})["status"].get("nominatedNodeName")) or gone(side))
    seen: dict[str, Any] = {}
    if isinstance(side, Real):
        terminating = [
            name for name in ("older", "younger", "middle") if "deletionTimestamp" in (side.pod(name) or {})["metadata"]
        ]
        seen["victims"] = terminating
        for name in terminating:
            side.kubelet_ends(name)
    else:
        seen["victims"] = [name for name in ("older", "younger", "middle") if side.pod(name) is None]
    side.until(lambda: "nodeName" in (side.pod("high") or {})["spec"])
    (event,) = [each for each in side.events("younger") if each["reason"] == "Preempted"]
    seen["event"] = {name: event.get(name) for name in ("type", "reason", "action", "reportingComponent")}
    seen["message"] = event["message"].split()[:2]
    spec = (side.pod("high") or {})["spec"]
    seen["spec"] = {name: spec.get(name) for name in ("priority", "priorityClassName", "preemptionPolicy")}
    return seen


def gone(side: Side) -> bool:
    return side.pod("younger") is None


def test_the_same_pod_is_preempted_with_the_same_message(real: RealCluster) -> None:
    ours, theirs = both(real, 3, preempted)
    assert theirs["victims"] == ["younger"]
    assert ours == theirs


def waited(side: Side) -> float:
    """Seconds from the scheduler's refusal to its assent, with room made right after the refusal."""
    side.create("holder")
    side.run("holder")
    side.create("waiting")
    if isinstance(side, Real):  # of ours, time stands still meanwhile
        side.until(lambda: bool(reasons(side, "FailedScheduling")))
    side.delete("holder", 0)
    side.until(lambda: bool(reasons(side, "Scheduled")))
    refused, placed = (min(reasons(side, word)) for word in ("FailedScheduling", "Scheduled"))
    return (placed - refused).total_seconds()


def reasons(side: Side, reason: str) -> list[datetime]:
    """When the scheduler said it."""
    found = [each for each in side.events("waiting") if each["reason"] == reason]
    return [datetime.fromisoformat(each["eventTime"] or each["firstTimestamp"]) for each in found]


def test_a_pod_that_was_refused_is_tried_again_after_a_second_at_the_earliest(real: RealCluster) -> None:
    """A scheduler since 1.33 with nothing else to do tries at once; ours is one of 1.32."""
    ours, theirs = both(real, 1, waited)
    assert ours == pytest.approx(1.0)
    assert theirs >= 0.0
