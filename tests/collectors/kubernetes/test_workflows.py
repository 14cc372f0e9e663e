"""Workflows and volume claims as they are told, without a network."""

from pathlib import Path

import pytest

from harness.collectors.journal import Journal
from harness.collectors.kubernetes.pvcs import Claims
from harness.collectors.kubernetes.workflows import Workflows
from harness.model import Event, Sample
from harness.model.phases import CLAIM_CAPACITY_BYTES
from harness.store import RunFolder
from tests.support.manifests import RUN, WF, at, claim, time, workflow


class Scene:
    def __init__(self, path: Path, recorded: tuple[tuple[str, str], ...] = ()) -> None:
        self.folder = RunFolder(path)
        self.now = at(100)
        journal = Journal(self.folder.recorder(), now=lambda: self.now)
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

    @pytest.mark.parametrize(("phase", "finished", "at_s"), [("Running", None, 2), ("Succeeded", 40, 40)])
    def test_a_workflow_with_a_complete_status(self, scene: Scene, phase: str, finished: int | None, at_s: int) -> None:
        """The fields of ``WorkflowStatus`` in Argo 3.4 to 4.1; what has not happened yet is null."""
        node = {
            "id": f"{WF}-1", "name": f"{WF}.root.train.executor(0)", "displayName": "executor(0)", "type": "Pod",
            "templateName": "system-container-impl", "templateScope": f"local/{WF}", "phase": phase,
            "boundaryID": f"{WF}-0", "startedAt": time(3), "finishedAt": time(39) if finished else None,
            "progress": "1/1", "resourcesDuration": {"cpu": 53, "memory": 19}, "hostNodeName": "aks-steps-1",
        }  # fmt: skip
        status = {
            "startedAt": time(2), "finishedAt": time(finished) if finished else None, "estimatedDuration": 38,
            "progress": "1/1", "nodes": {node["id"]: node}, "storedTemplates": {}, "conditions": [{"type": "PodRunning", "status": "False"}],
            "resourcesDuration": {"cpu": 53, "memory": 19}, "artifactRepositoryRef": {"default": True},
            "artifactGCStatus": {"notSpecified": True}, "taskResultsCompletionStatus": {node["id"]: True},
        }  # fmt: skip
        scene.workflows.see("MODIFIED", workflow(phase, **status))
        (event,) = scene.folder.records(Event)
        assert (event.at, event.reason, event.run, event.message) == (at(at_s), phase, RUN, "")

    def test_an_end_is_persisted_once_the_platform_labels_it(self, scene: Scene) -> None:
        scene.workflows.see("ADDED", workflow("Succeeded"))
        assert not scene.workflows.persisted
        scene.workflows.see("MODIFIED", workflow("Succeeded", persisted=True))
        scene.workflows.see("DELETED", workflow("Succeeded", persisted=True))
        assert scene.workflows.persisted == {RUN: True}

    def test_workflows_of_other_tests_and_recorded_ones_are_ignored(self, tmp_path: Path) -> None:
        scene = Scene(tmp_path, recorded=((WF, "Running"),))
        scene.workflows.see("ADDED", workflow("Running"))
        scene.workflows.see("ADDED", workflow("Succeeded", persisted=True, created=-3600))
        assert not scene.told()
        assert not scene.workflows.persisted


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
