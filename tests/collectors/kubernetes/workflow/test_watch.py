"""Workflows and volume claims as they are told, without a network."""

from pathlib import Path
from typing import Any, cast

import pytest

from harness.collectors.collector import Activity
from harness.collectors.journal import Journal
from harness.collectors.kubernetes.kube_api import KubeApi
from harness.collectors.kubernetes.pod.events import Events
from harness.collectors.kubernetes.pvcs import Claims
from harness.collectors.kubernetes.workflow.reader import WorkflowReader
from harness.collectors.kubernetes.workflow.watch import Workflows
from harness.collectors.source_health import UnreachableError
from harness.model import Event, Sample
from harness.model.phases import CLAIM_CAPACITY_BYTES
from harness.store import RunFolder
from tests.support.manifests import RUN, WF, at, claim, event, time, workflow
from tests.support.recorded_workflows import recorded


class Scene:
    def __init__(self, path: Path, recorded: tuple[tuple[str, str], ...] = ()) -> None:
        self.folder = RunFolder(path)
        self.now = at(100)
        self.journal = journal = Journal(self.folder.recorder(), now=lambda: self.now)
        self.workflows = Workflows(journal, at(0), recorded)
        self.claims = Claims(journal)

    def told(self) -> list[tuple[str, str, str]]:
        return [(event.kind, event.object, event.reason) for event in self.folder.records(Event)]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


class TestWorkflows:
    def test_each_phase_is_recorded_once_dated_by_when_it_was_seen(self, scene: Scene) -> None:
        for phase in ("", "Running", "Running", "Failed", "Failed"):
            scene.workflows.see("MODIFIED", workflow(phase))
            scene.now += 10**9
        running, failed = scene.folder.records(Event)
        assert (running.at, running.reason, running.run, running.type) == (at(101), "Running", RUN, "Normal")
        assert (failed.at, failed.reason, failed.run, failed.type) == (at(103), "Failed", RUN, "Warning")

    def test_complete_workflows_hold_time_and_reason(self, scene: Scene) -> None:
        scene.workflows.see("ADDED", workflow("Error", startedAt=time(2), finishedAt=time(40), message="no space"))
        why, event = scene.folder.records(Event)
        assert (event.at, event.reason, event.message) == (at(40), "Error", "no space")
        assert (why.kind, why.object, why.message, why.run) == ("Task", "", "no space", RUN)

    def test_an_end_is_persisted_once_the_platform_labels_it(self, scene: Scene) -> None:
        scene.workflows.see("ADDED", workflow("Succeeded"))
        assert not scene.workflows.persisted
        scene.workflows.see("MODIFIED", workflow("Succeeded", persisted=True))
        scene.workflows.see("DELETED", workflow("Succeeded", persisted=True))
        assert scene.workflows.persisted == {RUN: True}

    def test_a_run_is_unfinished_while_the_watch_shows_its_workflow_before_its_end(self, scene: Scene) -> None:
        scene.workflows.see("ADDED", workflow())
        assert scene.workflows.unfinished == {RUN}, "the controller has not looked at it yet"
        scene.workflows.see("MODIFIED", workflow("Running"))
        assert scene.workflows.unfinished == {RUN}
        scene.workflows.see("MODIFIED", workflow("Failed"))
        scene.workflows.see("MODIFIED", workflow("Running", startedAt=time(2)))  # read before, and complete
        assert not scene.workflows.unfinished

    def test_the_run_of_a_deleted_workflow_is_not_known_to_be_unfinished(self, scene: Scene) -> None:
        scene.workflows.see("ADDED", workflow("Running"))
        scene.workflows.see("DELETED", workflow("Running"))
        assert not scene.workflows.unfinished

    def test_workflows_of_other_tests_and_recorded_ones_are_ignored(self, tmp_path: Path) -> None:
        scene = Scene(tmp_path, recorded=((WF, "Running"),))
        scene.workflows.see("ADDED", workflow("Running"))
        scene.workflows.see("ADDED", workflow("Succeeded", persisted=True, created=-3600))
        assert not scene.told()
        assert not scene.workflows.persisted

    def test_the_reasons_in_a_complete_workflow_are_recorded_once_with_their_run_and_task(self, scene: Scene) -> None:
        complete = recorded("oom")["workflows"][-1]
        scene.workflows.see("ADDED", {"metadata": complete["metadata"]})
        for _ in range(2):
            scene.workflows.see("MODIFIED", complete)
        (why,) = [each for each in scene.folder.records(Event) if each.kind == "Task"]
        assert (why.object, why.reason, why.message) == ("step", "FAILED", "main: OOMKilled (exit code 137)")
        assert why.run == complete["metadata"]["labels"]["pipeline/runid"]
        assert why.at == 1795351743 * 10**9  # the node's end

    def test_nodes_that_argo_keeps_elsewhere_or_damaged_ones_are_noted(self, scene: Scene) -> None:
        for status in ({"offloadNodeStatusVersion": "fnv:1"}, {"compressedNodes": "%"}):
            scene.workflows.see("MODIFIED", workflow("Running", **status))
        noted = [each for each in scene.folder.records(Event) if each.kind == "Observer"]
        assert [each.object for each in noted] == ["kubernetes workflow nodes"] * 2
        assert "nodeStatusOffLoad" in noted[0].message
        assert "can't be read" in noted[1].message

    def test_an_event_about_a_workflow_belongs_to_its_run(self, scene: Scene) -> None:
        events = Events(scene.journal, lambda _: None, at(0), run_of_workflow=scene.workflows.run_of)
        scene.workflows.see("ADDED", workflow("Running"))
        for name in (WF, "another"):
            about = {"kind": "Workflow", "namespace": "kubeflow", "name": name}
            events.see("ADDED", event("WorkflowNodeFailed", "Failed node", 4, uid=name, involvedObject=about))
        told = [each for each in scene.folder.records(Event) if each.reason == "WorkflowNodeFailed"]
        assert [(each.object, each.run) for each in told] == [(WF, RUN), ("another", None)]


class Answers:
    """A cluster's API that answers requests for workflows with these statuses, and counts them."""

    def __init__(self, *statuses: int) -> None:
        self.statuses = list(statuses)
        self.asked: list[str] = []

    def get(self, path: str) -> dict[str, Any]:
        self.asked.append(path)
        if status := self.statuses.pop(0):
            raise UnreachableError(f"GET {path}: {status}", status)
        return workflow("Failed", message="no space")


class TestReader:
    @pytest.mark.parametrize(
        ("statuses", "asked", "noted"),
        [((0, 0), 2, 0), ((404, 0), 2, 0), ((403, 0), 1, 1), ((500, 0), 2, 1)],
    )
    def test_failed_workflows_are_read_until_that_is_forbidden(
        self, scene: Scene, statuses: tuple[int, ...], asked: int, noted: int
    ) -> None:
        api, clock = Answers(*statuses), iter(range(1000))
        reader = WorkflowReader(
            cast("KubeApi", api), scene.workflows, scene.journal, Activity(), set, clock=lambda: float(next(clock))
        )
        for name in ("first", "second"):
            failed = workflow("Failed")
            scene.workflows.see("MODIFIED", {"metadata": {**failed["metadata"], "name": name}})
        reader.look(100.0)
        assert len(api.asked) == asked
        assert api.asked[0] == "/apis/argoproj.io/v1alpha1/namespaces/kubeflow/workflows/first"
        assert sum(each.kind == "Observer" for each in scene.folder.records(Event)) == noted


def test_a_claim_is_recorded_when_pending_bound_resized_and_deleted(scene: Scene) -> None:
    for phase, size in (("Pending", ""), ("Bound", "20Gi"), ("Bound", "20Gi"), ("Bound", "40Gi")):
        scene.claims.see("MODIFIED", claim(phase, size))
    scene.claims.see("DELETED", claim("Bound", "40Gi"))
    events = scene.folder.records(Event)
    assert [(event.reason, event.type) for event in events] == [
        ("Pending", "Warning"),
        *[("Bound", "Normal")] * 2,
        ("Deleted", "Normal"),
    ]
    assert events[0].message == "20Gi of StorageClass managed-csi, in kubeflow"
    labels = {"volume": "seaweedfs-pvc", "namespace": "kubeflow"}
    assert scene.folder.records(Sample) == [
        Sample(CLAIM_CAPACITY_BYTES, at(100), 20 * 2.0**30, labels),
        Sample(CLAIM_CAPACITY_BYTES, at(100), 40 * 2.0**30, labels),
    ]
