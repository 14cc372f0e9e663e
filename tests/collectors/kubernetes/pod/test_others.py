"""Pods of other workloads: those that hold room on the nodes of the test's runs, and no others."""

from pathlib import Path
from typing import Any

import pytest

from harness.collectors.journal import Journal
from harness.collectors.kubernetes.pod.others import OtherPods
from harness.model import Sample, Span
from harness.model.phases import REQUESTED_CPU_CORES, RUNNING
from harness.store import RunFolder
from tests.support.manifests import at, condition, time


class Scene:
    def __init__(self, path: Path) -> None:
        self.folder, self.now = RunFolder(path), 100.0
        journal = Journal(self.folder.recorder(), now=lambda: at(self.now))
        self.others = OtherPods(journal, at(0), ("kubeflow",))

    def spans(self) -> list[tuple[str, int, int | None]]:
        """The last record of each pod."""
        last = {each.step: each for each in self.folder.records(Span)}
        assert {each.phase for each in last.values()} <= {RUNNING}
        return [(name, each.started_at, each.ended_at) for name, each in last.items()]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def other(name: str = "nb-0", node: str | None = "a", *, owner: str = "StatefulSet", **more: Any) -> dict[str, Any]:
    container = {"name": "c", "resources": {"requests": {"cpu": more.pop("cpu", "2")}}}
    return {
        "metadata": {
            "name": name, "namespace": more.pop("namespace", "team-b"), "uid": f"uid-{name}",
            "creationTimestamp": time(3), "ownerReferences": [{"kind": owner, "name": "nb", "controller": True}],
        },
        "spec": {"containers": [container], **({"nodeName": node} if node else {})},
        "status": {"phase": more.pop("phase", "Running"), "conditions": [condition("PodScheduled", "True", 7)]},
    }  # fmt: skip


def test_a_pod_is_recorded_from_its_scheduling_to_its_end_with_what_it_requests(scene: Scene) -> None:
    scene.others.use({"a"})
    for name in ("nb-0", "nb-1"):
        scene.others.see("ADDED", other(name))
    scene.others.see("ADDED", other("nb-2", cpu="500m"))
    scene.others.see("MODIFIED", other("nb-0"))
    assert scene.spans() == [(f"team-b/nb-{k}", at(7), None) for k in range(3)]
    scene.now = 120.0
    scene.others.see("MODIFIED", other("nb-0", phase="Succeeded"))
    scene.now = 130.0
    scene.others.see("DELETED", other("nb-0", phase="Succeeded"))
    scene.others.see("DELETED", other("nb-1"))
    assert [end for *_, end in scene.spans()] == [at(120), at(130), None]
    spans = list(scene.folder.records(Span))
    assert len(spans) == 5
    assert {(each.run, each.task, each.node) for each in spans} == {("team-b/nb", "team-b/nb", "a")}
    requests = [(s.labels, s.value) for s in scene.folder.records(Sample) if s.metric == REQUESTED_CPU_CORES]
    assert requests == [({"task": "team-b/nb"}, 2.0), ({"pod": "team-b/nb-2"}, 0.5)]


@pytest.mark.parametrize(
    "manifest",
    [
        other(owner="DaemonSet"),
        other(owner="Node"),  # a static pod of the kubelet
        other(namespace="kube-system"),
        other(namespace="kubeflow"),
        other(node=None),
        other(node="b"),
        other(phase="Succeeded"),
    ],
    ids=["daemon", "static", "system", "platform", "waits", "elsewhere", "over"],
)
def test_what_holds_no_room_of_the_test_s_is_not_recorded(manifest: dict[str, Any], scene: Scene) -> None:
    scene.others.use({"a"})
    scene.others.see("ADDED", manifest)
    scene.others.see("DELETED", manifest)
    assert scene.spans() == []


def test_a_pod_counts_once_it_has_a_node(scene: Scene) -> None:
    scene.others.use({"a"})
    scene.others.see("ADDED", other(node=None, phase="Pending"))
    scene.others.see("MODIFIED", other(phase="Pending"))
    assert [name for name, *_ in scene.spans()] == ["team-b/nb-0"]


def test_pods_of_before_count_once_a_run_has_used_their_node_those_of_before_the_test_do_not(scene: Scene) -> None:
    scene.others.see("ADDED", other("ended"))
    scene.others.see("ADDED", other("lives"))
    scene.others.see("ADDED", other("long-ago"))
    scene.others.see("ADDED", other("elsewhere", node="b"))
    scene.others.see("DELETED", other("ended"))
    scene.now = -1.0
    scene.others.see("DELETED", other("long-ago"))
    assert scene.spans() == []
    scene.others.use({"a"})
    scene.others.use({"a"})
    assert scene.spans() == [("team-b/ended", at(7), at(100)), ("team-b/lives", at(7), None)]
