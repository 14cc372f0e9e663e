"""Records imported from files."""

import json
from pathlib import Path
from typing import Any

import pytest

from harness.analysis.timeline import Timeline
from harness.collectors.collector import Observation, ObserverSettings
from harness.collectors.importing import count_runs, import_files, read_files
from harness.model import ConfigError, Event, Node, Sample
from harness.model.phases import SUCCEEDED
from harness.plan.plans import plan_observation
from harness.store import RunFolder
from harness.store.tables import load, seal
from harness.targets import kfp
from tests.support.dumps import LISTING, NODE, RANGE
from tests.support.kube_stories import DONE, STORY
from tests.support.manifests import RUN, WF, at, claim, event, pod, time, workflow
from tests.support.observations import observation as observed_by


def observation(path: Path) -> Observation:
    folder = RunFolder.create(path, "import")
    plan = plan_observation("kfp", "", {}, 0)
    folder.write_plan(plan)
    return observed_by(folder, plan=plan, target=kfp.from_plan(plan), settings=ObserverSettings(host=""))


def write(path: Path, document: Any) -> Path:
    path.write_text(document if isinstance(document, str) else json.dumps(document))
    return path


def test_dumps_of_a_cluster_runs_and_samples_make_a_run_that_can_be_analysed(tmp_path: Path) -> None:
    about = observation(tmp_path)
    events = [each for each in STORY if "reason" in each]
    objects = {
        "kind": "List",
        "items": [*({"kind": "Event", **each} for each in events), {"kind": "Pod", **DONE}, NODE],
    }
    counts = import_files(
        about,
        read_files(
            [
                write(tmp_path / "objects.json", objects),
                write(tmp_path / "runs.json", LISTING),
                write(tmp_path / "argo_workflows.json", RANGE),
            ]
        ),
    )
    assert counts == {"Node": 1, "Pod": 1, "Event": len(events), "Run": 2, "Sample": 2}
    (node,) = about.folder.records(Node)
    assert (node.pool, node.cpu, node.gpu, node.pods) == ("cpu", 3.92, 2.0, 64)
    assert [(s.metric, s.value, dict(s.labels)) for s in about.folder.records(Sample) if s.metric == "argo_workflows"] == [
        ("argo_workflows", 3.0, {"phase": "Pending"}), ("argo_workflows", 4.0, {"phase": "Pending"}),
    ]  # fmt: skip
    assert {each.run for each in about.folder.records(Event) if each.kind == "Pod"} == {RUN}
    seal(about.folder)
    timeline = Timeline.from_frames(about.plan, load(about.folder))
    assert sorted(timeline.runs["state"]) == ["", SUCCEEDED]
    assert len(timeline.pods[timeline.pods["row"] >= 0]) == len(timeline.pods) >= 7


def test_a_list_of_one_kind_needs_no_kind_in_its_items(tmp_path: Path) -> None:
    about = observation(tmp_path)
    path = write(tmp_path / "pods.json", {"kind": "PodList", "items": [DONE, pod("second")]})
    assert import_files(about, read_files([path])) == {"Pod": 2}


@pytest.mark.parametrize(
    ("document", "says"),
    [
        ("not json", "not JSON"),
        ({"a": 1}, "neither Kubernetes objects"),
        ([1], "neither Kubernetes objects"),
        ({"kind": "List", "items": [{"kind": "Secret", "metadata": {}}]}, r"items\[0\] is a Secret"),
        ({"status": "success", "data": {"resultType": "vector", "result": []}}, "holds a vector"),
        ({"status": "success", "data": {"resultType": "matrix", "result": [{"metric": {}}]}}, "'values' is missing"),
        ({"kind": "PodList", "items": [{"status": {}}]}, "'metadata' is missing"),
        ({"runs": [{"state": "SUCCEEDED"}]}, "'run_id' is missing"),
        ({"kind": "List", "items": [1]}, "damaged or truncated"),
    ],
)
def test_an_invalid_file_is_named_with_the_reason(tmp_path: Path, document: Any, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        import_files(observation(tmp_path), read_files([write(tmp_path / "x.json", document)]))


def test_an_empty_listing_is_valid(tmp_path: Path) -> None:
    listing = tmp_path / "runs.json"
    listing.write_text("{}")
    dumps = read_files([listing])
    assert count_runs(dumps, kfp.from_plan(plan_observation("kfp", "", {}, 0))) == 0
    assert import_files(observation(tmp_path), dumps) == {"Run": 0}


def test_nothing_is_recorded_when_one_file_is_unreadable(tmp_path: Path) -> None:
    about = observation(tmp_path)
    good = write(tmp_path / "pods.json", {"kind": "PodList", "items": [DONE]})
    with pytest.raises(ConfigError, match="can't be read"):
        import_files(about, read_files([good, tmp_path / "missing.json"]))
    assert not list(about.folder.path.glob("*.jsonl"))


def test_an_event_that_happened_again_counts_how_often(tmp_path: Path) -> None:
    about = observation(tmp_path)
    series = event(
        "FailedScheduling",
        "0/3 nodes",
        1,
        micro_at=1.5,
        series={"count": 12, "lastObservedTime": "2026-11-21T10:01:00.000001Z"},
    )
    path = write(tmp_path / "e.json", {"kind": "EventList", "items": [series]})
    import_files(about, read_files([write(tmp_path / "p.json", {"kind": "PodList", "items": [DONE]}), path]))
    (found,) = [each for each in about.folder.records(Event) if each.reason == "FailedScheduling"]
    assert (found.count, found.at % 10**9) == (12, 1000)


def test_workflows_and_claims_are_imported(tmp_path: Path) -> None:
    about = observation(tmp_path)
    items = [
        {"kind": "Workflow", **workflow("Failed", startedAt=time(2), finishedAt=time(40), message="no space")},
        {"kind": "PersistentVolumeClaim", **claim("Bound", "20Gi")},
    ]
    path = write(tmp_path / "objects.json", {"kind": "List", "items": items})
    assert import_files(about, read_files([path])) == {"Workflow": 1, "PersistentVolumeClaim": 1}
    found = {(event.kind, event.object, event.reason): event for event in about.folder.records(Event)}
    assert found["Workflow", WF, "Failed"].at == at(40)
    assert ("PersistentVolumeClaim", "seaweedfs-pvc", "Bound") in found


def test_the_limits_in_the_controllers_config_map_are_imported_and_other_config_maps_ignored(tmp_path: Path) -> None:
    about = observation(tmp_path)
    maps = [
        {"metadata": {"name": name, "namespace": "argo"}, "data": {"config": f"parallelism: {limit}"}}
        for name, limit in (("workflow-controller-configmap", 4), ("another", 9))
    ]
    path = write(tmp_path / "maps.json", {"kind": "ConfigMapList", "items": maps})
    assert import_files(about, read_files([path])) == {"ConfigMap": 2}
    (found,) = about.folder.records(Event)
    assert (found.kind, found.object, found.message, found.namespace) == (
        "Platform", "workflow-controller-configmap", "parallelism=4", "argo",
    )  # fmt: skip
