"""Complete objects recorded from a real control plane, replayed; fixtures/README.md describes the recording."""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import orjson
import pytest

from harness.collectors.collector import ObserverSettings
from harness.collectors.importing import import_files, read_files
from harness.collectors.journal import Journal
from harness.collectors.kubernetes.nodes import Nodes
from harness.collectors.kubernetes.pod.events import Events
from harness.collectors.kubernetes.pod.observed import Pods
from harness.model import Event, Node, Span
from harness.model.phases import RUNNING, STARTING, UNSCHEDULABLE
from harness.plan.plans import plan_observation
from harness.store import RunFolder
from harness.targets.kfp import KfpTarget
from tests.support.observations import observation

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
    """Each change as the watches reported it."""
    folder = RunFolder.create(path, scene)
    with folder.recorder() as recorder:
        journal = Journal(recorder)
        pods, nodes = Pods(journal, 0), Nodes(journal)
        events = Events(journal, pods.see_event, 0)
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
    last = {(s.phase, s.attempt): s for s in seen.folder.records(Span) if s.step == "second"}
    waits = [span for (phase, _), span in sorted(last.items()) if phase == UNSCHEDULABLE]
    waited_s = sum((span.ended_at - span.started_at) / 1e9 for span in waits)
    assert waited_s == pytest.approx(36.17, abs=0.01)  # between the first FailedScheduling and Scheduled
    assert len({span.reason for span in waits}) == len(waits) > 1  # one for each thing that the scheduler stated
    assert all(span.reason.startswith("scheduler/") and "nodes are available" in span.reason for span in waits)
    assert UNSCHEDULABLE not in seen.phases("first")
    assert [each.reason for each in seen.told("second", "OOMKilled")] == ["OOMKilled"]


def test_an_event_that_became_a_series_is_recorded_again(tmp_path: Path) -> None:
    objects = [each["object"] for each in recording("unschedulable")["told"]]
    (series,) = [each["series"] for each in objects if each.get("series")]
    assert series["count"] == 2
    told = replay(tmp_path, "unschedulable").told("second", "FailedScheduling")
    assert sum(each.count for each in told) == sum(each.get("reason") == "FailedScheduling" for each in objects) == 7


def test_a_silent_node_is_not_ready_and_its_pods_are_evicted(tmp_path: Path) -> None:
    seen = replay(tmp_path, "lost")
    assert seen.told("lost", "NodeNotReady")[0].run == "lost"
    assert seen.told("lost", "TaintManagerEviction")[0].run == "lost"
    assert seen.phases("lost")[RUNNING].node == "node-lost"


@pytest.mark.parametrize("scene", SCENES)
def test_a_final_dump_has_the_same_failures_and_both_apis_the_same_events(tmp_path: Path, scene: str) -> None:
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
            import_files(
                observation(folder, Journal(recorder), plan=plan, target=target, settings=ObserverSettings(host="")),
                read_files([dump]),
            )
        told.append({(e.object, e.reason, e.message, e.at, e.count) for e in folder.records(Event) if e.kind == "Pod"})
        assert {node.name for node in folder.records(Node)} == {node.name for node in watched.folder.records(Node)}
    assert told[0] == told[1]
    assert {(name, reason) for name, reason, *_ in told[0]} >= {
        (each["involvedObject"]["name"], each["reason"]) for each in core if each["involvedObject"]["kind"] == "Pod"
    }


def _others(latest: dict[str, Any]) -> list[dict[str, Any]]:
    return [each for each in latest.values() if each["kind"] != "Event"]
