"""Nodes, pods and events, without a network."""

from pathlib import Path
from typing import Any

import pytest

from harness.collectors.journal import Journal
from harness.collectors.kubernetes.nodes import Nodes, node_of
from harness.collectors.kubernetes.pod.events import Events
from harness.collectors.kubernetes.pod.observed import Pods
from harness.model import Event, Node, Span
from harness.model.phases import RUNNING, SCHEDULING
from harness.store import RunFolder
from tests.support.kube_stories import DONE, STORY
from tests.support.manifests import RUN, at, condition, event, pod, running, time


class Scene:
    def __init__(self, path: Path, since: float = 0.0) -> None:
        self.folder = RunFolder(path)
        self.now = at(100)
        journal = Journal(self.folder.recorder(), now=lambda: self.now)
        self.nodes = Nodes(journal, self.folder.records(Node))
        self.pods = Pods(journal, at(since))
        self.events = Events(journal, self.pods.see_event, at(since))


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def node(name: str = "n", *, ready: float | None = 5, **more: Any) -> dict[str, Any]:
    labels = more.pop("labels", {})
    state = condition("Ready", "False" if ready is None else "True", ready or 0)
    return {
        "metadata": {"name": name, "uid": name, "creationTimestamp": time(0), "labels": labels, **more},
        "status": {"allocatable": {"cpu": "4"}, "conditions": [state]},
    }


class TestNodes:
    def test_a_node_is_recorded_when_it_is_new_when_ready_and_when_gone_and_not_at_each_heartbeat(
        self, scene: Scene
    ) -> None:
        scene.nodes.see("ADDED", node(ready=None))
        hosts = {node()["metadata"]["name"]}
        assert scene.nodes.of_steps(hosts) == (0, 1)
        for _ in range(5):
            scene.nodes.see("MODIFIED", node())
        assert scene.nodes.of_steps(hosts) == (1, 1)
        scene.nodes.see("DELETED", node(deletionTimestamp=time(90)))
        assert scene.nodes.of_steps(hosts) == (0, 0)
        assert [(each.ready_at, each.gone_at) for each in scene.folder.records(Node)] == [
            (None, None),
            (at(5), None),
            (at(5), at(90)),
        ]

    def test_the_gpus_of_a_new_node_are_dated_when_they_can_first_be_allocated(self, scene: Scene) -> None:
        def with_gpus(count: str) -> dict[str, Any]:
            found = node()
            found["status"]["allocatable"] |= {"nvidia.com/gpu": count}
            return found

        scene.nodes.see("ADDED", node())
        scene.nodes.see("MODIFIED", with_gpus("2"))
        scene.nodes.see("MODIFIED", with_gpus("0"))  # its device plugin restarts
        scene.nodes.see("MODIFIED", with_gpus("2"))
        first, second, *later = scene.folder.records(Node)
        assert (first.gpus_at, first.gpu) == (None, 0.0)
        assert second.gpus_at is not None
        assert {each.gpus_at for each in later} == {second.gpus_at}

    def test_a_node_that_has_gpus_when_it_is_first_seen_is_not_dated(self, scene: Scene) -> None:
        found = node()
        found["status"]["allocatable"] |= {"nvidia.com/gpu": "2"}
        scene.nodes.see("ADDED", found)
        assert [each.gpus_at for each in scene.folder.records(Node)] == [None]

    def test_nodes_are_counted_in_the_pools_that_the_steps_use_as_in_reports(self, scene: Scene) -> None:
        for name, pool, ready in (("s", "system", 5), ("d", "drivers", 5), ("a", "steps", 5), ("b", "steps", None)):
            scene.nodes.see("ADDED", node(name, ready=ready, labels={"agentpool": pool}))
        scene.nodes.see("ADDED", node("v", labels={"agentpool": "steps", "type": "virtual-kubelet"}))
        assert scene.nodes.of_steps(scene.pods.step_hosts) is None, "no step has a node yet"
        ready, every = scene.nodes.of_all()
        assert every == len({name for name, node in scene.nodes.known.items() if not node.virtual})
        assert 0 < ready <= every
        scene.pods.see("ADDED", pod("driver", "root.train-driver", node="d"))
        assert scene.pods.hosts == {"d"}
        assert scene.nodes.of_steps(scene.pods.step_hosts) is None, "drivers may run elsewhere"
        scene.pods.see("ADDED", pod("train", node="a"))
        assert scene.nodes.of_steps(scene.pods.step_hosts) == (1, 2)
        scene.nodes.see("DELETED", node("a", labels={"agentpool": "steps"}))
        assert scene.nodes.of_steps(scene.pods.step_hosts) == (0, 1), "the pool of a node that has gone is known"

    @pytest.mark.parametrize("label", ["node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type", "other"])
    def test_its_machine_is_the_clouds_name_of_its_type(self, label: str) -> None:
        machine = node_of(node(labels={label: "Standard_D4s_v5"})).machine
        assert machine == ("" if label == "other" else "Standard_D4s_v5")

    def test_a_flapping_node_keeps_the_time_it_first_became_ready(self, scene: Scene) -> None:
        for manifest in (node(ready=5), node(ready=None), node(ready=50)):
            scene.nodes.see("MODIFIED", manifest)
        assert {each.ready_at for each in scene.folder.records(Node)} == {at(5)}

    def test_nodes_removed_between_observers_are_recorded_as_gone_and_others_not_again(self, tmp_path: Path) -> None:
        first = Scene(tmp_path)
        for name in ("stays", "goes"):
            first.nodes.see("ADDED", node(name))
        second = Scene(tmp_path)
        second.nodes.see("ADDED", node("stays"))
        second.nodes.listed()
        second.nodes.listed()
        assert [(each.name, each.gone_at is None) for each in second.folder.records(Node)] == [
            ("stays", True),
            ("goes", True),
            ("goes", False),
        ]

    @pytest.mark.parametrize(
        ("labels", "pool", "spot"),
        [
            ({"kubernetes.azure.com/agentpool": "a", "kubernetes.azure.com/scalesetpriority": "spot"}, "a", True),
            ({"agentpool": "b"}, "b", False),
            ({"cloud.google.com/gke-nodepool": "c", "cloud.google.com/gke-spot": "true"}, "c", True),
            ({"eks.amazonaws.com/nodegroup": "d", "eks.amazonaws.com/capacityType": "SPOT"}, "d", True),
            ({"type": "virtual-kubelet", "kubernetes.azure.com/role": "agent"}, "virtual-node", False),
            ({"eks.amazonaws.com/compute-type": "fargate"}, "fargate", False),
            ({"type": "gpu", "agentpool": "b"}, "b", False),
            ({"karpenter.sh/nodepool": "e", "karpenter.sh/capacity-type": "on-demand"}, "e", False),
            ({}, "default", False),
        ],
    )
    def test_pool_and_spot_are_read_from_the_providers_labels(
        self, labels: dict[str, str], pool: str, spot: bool
    ) -> None:
        found = node_of(node(labels=labels))
        assert (found.pool, found.spot, found.virtual) == (pool, spot, pool in {"virtual-node", "fargate"})


class TestPods:
    def test_a_span_that_turns_out_wrong_is_overridden_by_an_empty_one(self, scene: Scene) -> None:
        """The pull for a container that starts after the main one is reported before the main one's start."""
        seen = pod(node="n", conditions=[condition("PodScheduled", "True", 4)])
        scene.pods.see("ADDED", seen)
        scene.pods.see_event(event("Pulling", 'Pulling image "late"', 20))
        scene.pods.see("MODIFIED", {**seen, "status": {**seen["status"], "containerStatuses": [running("main", 8)]}})
        last = {(span.phase, span.attempt): span for span in scene.folder.records(Span)}
        assert last["image pull", 0].started_at == last["image pull", 0].ended_at
        assert last[RUNNING, 0].ended_at is None

    def test_pods_of_tests_before_this_one_are_left_out(self, tmp_path: Path) -> None:
        scene = Scene(tmp_path, since=1000)
        scene.pods.see("ADDED", DONE)
        assert not scene.folder.records(Span)

    def test_creation_is_dated_by_a_clock_calibrated_with_the_scheduler_s_stamps(self, scene: Scene) -> None:
        """Our clock is 7 s ahead, and the watch delays by 10 to 40 ms."""
        for k, (created, told) in enumerate([(1.2, 0.040), (2.3, 0.010), (3.9, 0.020)]):
            manifest = pod(f"p{k}", created=created)
            scene.now = at(created + 7 + told)
            scene.pods.see("ADDED", manifest)
            placed = event("Scheduled", "assigned", created + 0.05, name=f"p{k}", micro_at=created + 0.05)
            scene.now = at(created + 0.05 + 7 + 0.010)
            scene.pods.see_event(placed)
        last = {span.step: span for span in scene.folder.records(Span) if span.phase == SCHEDULING}
        for k, created in enumerate((1.2, 2.3, 3.9)):
            assert last[f"p{k}"].started_at == pytest.approx(at(created), abs=0.04e9)
            assert last[f"p{k}"].ended_at == pytest.approx(at(created + 0.05), abs=1e6)


class TestEvents:
    def test_an_event_that_arrives_before_its_pod_is_held(self, scene: Scene) -> None:
        early = event("Scheduled", "assigned", 4, micro_at=4.5)
        scene.events.see("ADDED", early)
        assert not scene.folder.records(Event)
        scene.pods.see("ADDED", STORY[0])
        scene.now += 4 * 10**9
        scene.events.release()
        assert [(each.reason, each.run) for each in scene.folder.records(Event)] == [("Scheduled", RUN)]
        assert any(span.ended_at == at(4.5) + 500 for span in scene.folder.records(Span))

    def test_an_event_of_an_unknown_pod_is_recorded_after_a_while(self, scene: Scene) -> None:
        scene.events.see("ADDED", event("Scheduled", "assigned", 4, name="other"))
        scene.events.release(every=True)
        assert [(each.object, each.run) for each in scene.folder.records(Event)] == [("other", None)]

    def test_only_new_occurrences_are_counted(self, scene: Scene) -> None:
        def told(count: int, last: float) -> dict[str, Any]:
            about = {"kind": "Node", "name": "n1", "uid": "n1"}
            return event("NodeNotReady", "not ready", 1, uid="e", count=count, last=last, involvedObject=about)

        for manifest in (told(3, 10), told(3, 10), told(5, 20)):
            scene.events.see("MODIFIED", manifest)
        assert [(each.kind, each.object, each.count, each.at) for each in scene.folder.records(Event)] == [
            ("Node", "n1", 3, at(10)),
            ("Node", "n1", 2, at(20)),
        ]

    def test_events_from_long_before_the_test_are_left_out(self, tmp_path: Path) -> None:
        scene = Scene(tmp_path, since=1000)
        about = {"kind": "Node", "name": "n1", "uid": "n1"}
        scene.events.see("ADDED", event("NodeReady", "ready", 10, involvedObject=about))
        assert not scene.folder.records(Event)


def test_living_pods_of_runs_are_counted(scene: Scene) -> None:
    platforms_own = pod("mysql")
    platforms_own["metadata"]["labels"] = {}
    for each in (pod("first"), pod("second"), platforms_own):
        scene.pods.see("ADDED", each)
    assert scene.pods.alive == 2
    scene.pods.see("MODIFIED", pod("first", phase="Succeeded"))
    scene.pods.see("DELETED", pod("second"))
    assert scene.pods.alive == 0


def test_what_a_node_can_allocate_of_ephemeral_storage_is_read():
    manifest = node()
    assert node_of(manifest).ephemeral == 0.0, "unknown"
    manifest["status"]["allocatable"]["ephemeral-storage"] = "47093746742"
    assert node_of(manifest).ephemeral == 47_093_746_742.0
