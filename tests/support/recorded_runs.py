"""Runs as a real Kubeflow Pipelines 2.17 on Argo 4.0.8 reported them at their end, trimmed to what tests need."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parents[1] / "data/real/kfp/runs"


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A run in the API's own format, and what Kubernetes showed of it.

    Attributes:
        body: the answer for the run.
        workflow: name of its Argo workflow.
        pods: names of the nodes that its pods worked for, by pod.
    """

    body: dict[str, Any]
    workflow: str
    pods: dict[str, str]

    def pod(self, name: str) -> dict[str, Any]:
        """The manifest of a pod, as far as it says what the pod works for."""
        labels = {"pipeline/runid": self.body["run_id"], "workflows.argoproj.io/workflow": self.workflow}
        annotations = {"workflows.argoproj.io/node-name": self.pods[name]}
        return {"metadata": {"name": name, "namespace": "kubeflow", "labels": labels, "annotations": annotations}}


RECORDED = sorted(path.stem for path in _FOLDER.glob("*.json"))


def recorded_run(name: str) -> RecordedRun:
    """The recorded run called `name`, one of RECORDED."""
    found = json.loads((_FOLDER / f"{name}.json").read_text())
    workflow, pods, tasks = found.pop("workflow"), found.pop("pods"), found.pop("task_details")
    return RecordedRun({**found, "run_details": {"task_details": tasks}}, workflow, pods)
