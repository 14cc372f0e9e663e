"""What a real control plane told, whole objects, taken in once more; fixtures/README.md says how it was recorded."""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
import pytest

from harness.collectors.collector import Observation, ObserverSettings
from harness.collectors.importing import import_files, read_files
from harness.collectors.journal import Journal
from harness.collectors.kubernetes.cluster import Pods
from harness.collectors.kubernetes.events import Events
from harness.collectors.kubernetes.nodes import Nodes
from harness.model import Event, Node, Span
from harness.model.phases import RUNNING, SCHEDULING, STARTING, UNSCHEDULABLE
from harness.plan.plans import plan_observation
from harness.store import RunFolder
from harness.targets.kfp import KfpTarget

FIXTURES = Path(__file__).parents[1] / "fixtures" / "kubernetes"
SCENES = sorted(path.stem for path in FIXTURES.glob("*.json"))


def recording(scene: str) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads((FIXTURES / f"{scene}.json").read_bytes())
    return found


@dataclass
class Replay:
    """A run folder in which a scene was recorded."""

    folder: RunFolder

    def phases(self, pod: str) -> dict[str, Span]:
        return {span.phase: span for span in self.folder.records(Span) if span.step == pod}

    def told(self, pod: str, reason: str) -> list[Event]:
        return [each for each in self.folder.records(Event) if (each.object, each.reason) == (pod, reason)]


def replay(path: Path, scene: str) -> Replay:
    """Each change as the watches told it."""
    folder = RunFolder.create(path, scene)
    with folder.recorder() as recorder:
        journal = Journal(recorder)
        pods, nodes = Pods(journal, 0), Nodes(journal)
        events = Events(journal, pods.see_event, 0, set())
        see = {"Pod": pods.see, "Node": nodes.see, "Event": events.see}
        for each in recording(scene)["told"]:
            see[each["object"]["kind"]](each["type"], each["object"])
        events.release(every=True)
    return Replay(folder)


@pytest.mark.parametrize("scene", SCENES)
def test_the_spans_of_a_pod_follow_one_another(tmp_path: Path, scene: str) -> None:
    last = {(s.step, s.phase, s.attempt): s for s in replay(tmp_path, scene).folder.records(Span)}
    assert last
    for pod in {step for step, _, _ in last}:
        spans = sorted((s for s in last.values() if s.step == pod), key=lambda s: s.started_at)
        assert all(one.ended_at == next_.started_at for one, next_ in pairwise(spans))
        assert all(s.run == scene and s.task == "train" for s in spans)


def test_a_pod_that_does_not_fit_waits_until_another_has_ended(tmp_path: Path) -> None:
    seen = replay(tmp_path, "unschedulable")
    second = seen.phases("second")
    assert second[UNSCHEDULABLE].ended_at == second[STARTING].started_at
    assert second[STARTING].node == "node-unschedulable"
    waited_s = (second[UNSCHEDULABLE].ended_at - second[UNSCHEDULABLE].started_at) / 1e9
    assert waited_s == pytest.approx(40.97, abs=0.01)  # between the first FailedScheduling and Scheduled
    assert UNSCHEDULABLE not in seen.phases("first")
    assert [each.reason for each in seen.told("second", "OOMKilled")] == ["OOMKilled"]


def test_an_event_that_became_a_series_is_told_again(tmp_path: Path) -> None:
    """The scheduler of 1.20 begins to count a series with its second event: the count stays 1, its time goes on."""
    objects = [each["object"] for each in recording("unschedulable")["told"]]
    (series,) = [each["series"] for each in objects if each.get("series")]
    assert series["count"] == 1
    told = replay(tmp_path, "unschedulable").told("second", "FailedScheduling")
    assert sum(each.count for each in told) == sum(each.get("reason") == "FailedScheduling" for each in objects) == 6


def test_a_pod_that_is_preempted_ends_and_who_took_its_place_had_to_wait(tmp_path: Path) -> None:
    seen = replay(tmp_path, "preempted")
    assert seen.told("low", "Preempted")[0].run == "preempted"
    assert seen.phases("low")[RUNNING].ended_at is not None
    assert UNSCHEDULABLE in seen.phases("urgent")


def test_a_pod_that_is_drained_ends_when_it_is_deleted(tmp_path: Path) -> None:
    phases = replay(tmp_path, "evicted").phases("drained")
    assert list(phases) == [SCHEDULING, STARTING, RUNNING]
    assert phases[RUNNING].ended_at is not None


def test_a_node_that_falls_silent_is_not_ready_and_its_pods_are_thrown_out(tmp_path: Path) -> None:
    seen = replay(tmp_path, "lost")
    assert seen.told("lost", "NodeNotReady")[0].run == "lost"
    assert seen.told("lost", "TaintManagerEviction")[0].run == "lost"
    assert seen.phases("lost")[RUNNING].node == "node-lost"


def test_a_container_that_can_t_pull_and_is_then_killed_for_its_memory_says_both(tmp_path: Path) -> None:
    seen = replay(tmp_path, "failing")
    assert seen.told("failing", "ImagePullBackOff")[0].message == 'Back-off pulling image "example.org/train:1"'
    assert seen.told("failing", "OOMKilled")[0].run == "failing"
    phases = seen.phases("failing")
    assert phases[RUNNING].ended_at >= phases[RUNNING].started_at


@pytest.mark.parametrize("scene", SCENES)
def test_a_dump_of_the_end_tells_of_the_same_failures_and_both_apis_of_the_same_events(
    tmp_path: Path, scene: str
) -> None:
    watched = replay(tmp_path, scene)
    latest = {each["object"]["metadata"]["uid"]: each["object"] for each in recording(scene)["told"]}
    core = [each for each in latest.values() if each["kind"] == "Event"]
    new = [{**each, "kind": "Event"} for each in recording(scene)["events_v1"]]
    told = []
    for name, events in (("core", core), ("new", new)):
        dump = tmp_path / f"{name}.json"
        dump.write_bytes(orjson.dumps({"kind": "List", "items": [*_others(latest), *events]}))
        plan = plan_observation("kfp", "", {}, 0)
        folder = RunFolder.create(tmp_path, f"dump-{name}")
        with folder.recorder() as recorder:
            target = KfpTarget(plan.target_options)
            import_files(Observation(folder, plan, target, ObserverSettings(""), Journal(recorder)), read_files([dump]))
        told.append({(e.object, e.reason, e.message, e.at, e.count) for e in folder.records(Event) if e.kind == "Pod"})
        assert {node.name for node in folder.records(Node)} == {node.name for node in watched.folder.records(Node)}
    assert told[0] == told[1]
    assert {(name, reason) for name, reason, *_ in told[0]} >= {
        (each["involvedObject"]["name"], each["reason"]) for each in core if each["involvedObject"]["kind"] == "Pod"
    }


def _others(latest: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for each in latest.values() if each["kind"] != "Event"]
