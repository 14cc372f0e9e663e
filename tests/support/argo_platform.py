"""A simulated cluster that runs Argo's workflows, in simulated time and without HTTP."""

import itertools
import json
from pathlib import Path
from typing import Any

from harness.simulator.engine.calendar import Calendar
from harness.simulator.engine.distributions import fixed
from harness.simulator.kube_api.writing import Creations
from harness.simulator.kube_objects.actions import ClusterActions
from harness.simulator.kube_objects.view import KubernetesView
from harness.simulator.kube_objects.workflows import COMBINED
from harness.simulator.platform import Platform
from harness.simulator.profile import Controller, Step
from tests.support.platforms import profile

RECORDED = Path(__file__).parents[1] / "data" / "real" / "argo"
BEGUN_AT = 1_795_352_400 * 10**9
WORK = {"output": fixed(0.0), "cpu": fixed(0.01), "memory": fixed(1.0)}
POD = {"name": "w", "inputs": {"parameters": [{"name": "n", "value": "0"}]}, "container": {"image": "a"}}
FAILS = Step(match="bad*", duration=fixed(1.0), failing=1.0, **WORK)


def recorded(name: str) -> dict[str, Any]:
    """A workflow of a real controller: metadata, specification, and the last status."""
    return json.loads((RECORDED / f"{name}.json").read_text())


class ArgoPlatform:
    """Takes objects as the API does, and shows what the API would."""

    def __init__(self, *steps: Step, controller: dict[str, Any] | None = None, **more: Any) -> None:
        calendar = Calendar(BEGUN_AT)
        view = KubernetesView(calendar)
        settings = {"qps": 1e6, "burst": 10**6, "operation_s": 0.0, "settle_s": 0.0, "requeue_s": 1.0}
        settings |= {"error_retries": 0, **(controller or {})}
        usual = Step(duration=fixed(5.0), **WORK)
        self.platform = Platform(
            profile(steps=(*steps, usual), controller=Controller(**settings), **more), 0, view
        )  # fmt: skip
        view.follow(self.platform)
        self.platform.workflow_watchers.append(view.workflow_changed)
        self._view = view
        self._actions = ClusterActions(view, lambda: None)
        self._creations = Creations(view.store, self._actions, lambda: BEGUN_AT)
        self._numbers = itertools.count()

    def create(self, kind: str, name: str, namespace: str = "kubeflow", **content: Any) -> None:
        """Create an object; one of the cluster is in no namespace."""
        resource = self._type(kind)
        metadata = {"name": name, **content.pop("metadata", {})}
        namespace = namespace if resource.namespaced else ""
        self._creations.create(resource, namespace, {"kind": kind, "metadata": metadata, **content})

    def tried(self, name: str, spec: dict[str, Any]) -> dict[str, Any]:
        """What the API answers to the dry run of a workflow."""
        body, workflow = {"kind": "Workflow", "metadata": {"name": name}, "spec": spec}, self._type("Workflow")
        return self._creations.create(workflow, "kubeflow", body, dry=True).manifest(workflow)

    def run(self, until_s: float = 1000.0) -> None:
        """Let time pass until an instant."""
        self.platform.loop.run(until_s)

    def get(self, name: str, kind: str = "Workflow", namespace: str = "kubeflow") -> dict[str, Any]:
        """An object as the API shows it; empty if there is none."""
        found = self._view.store.get(self._type(kind), namespace, name)
        return found.manifest(self._type(kind)) if found is not None else {}

    def names(self, kind: str = "Workflow") -> list[str]:
        """The names of all objects of a kind."""
        return [each.name for each in self._view.store.objects(self._type(kind))]

    def events(self, name: str) -> list[str]:
        """What the controller told about a workflow, single or combined."""
        found = (each.manifest(self._type("Event")) for each in self._view.store.objects(self._type("Event")))
        return sorted(
            f"{each['type']} {each['reason']}: {each.get('message', '').removeprefix(COMBINED)}"
            for each in found
            if each["involvedObject"]["kind"] == "Workflow" and each["involvedObject"]["name"] == name
        )

    def shut_down(self, name: str, how: str) -> None:
        """Patch a workflow as ``argo terminate`` and ``argo stop`` do."""
        self._actions.patch("workflows", "kubeflow", name, {"spec": {"shutdown": how}})

    def delete(self, name: str) -> None:
        """Delete a workflow."""
        self._actions.delete("workflows", "kubeflow", name, None)

    def _type(self, kind: str) -> Any:
        return next(each for each in self._view.store.resources if each.kind == kind)


def dag(*tasks: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A workflow's specification with these tasks."""
    return {"entrypoint": "main", "templates": [{"name": "main", "dag": {"tasks": list(tasks)}}, POD], **more}


def steps(*groups: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """A workflow's specification with these groups of steps."""
    return {"entrypoint": "main", "templates": [{"name": "main", "steps": list(groups)}, POD], **more}


def task(name: str, **more: Any) -> dict[str, Any]:
    """A task or step that runs `POD`, unless `more` says otherwise."""
    return {"name": name, **({} if "templateRef" in more else {"template": "w"}), **more}


def ended(spec: dict[str, Any], *of_profile: Step, until_s: float = 300.0, **settings: Any) -> dict[str, Any]:
    """The workflow `wf` after a while; tasks named ``bad…`` fail, where the profile has no other steps."""
    platform = ArgoPlatform(*(of_profile or (FAILS,)), **settings)
    platform.create("Workflow", "wf", spec=spec)
    platform.run(until_s)
    return platform.get("wf")


def phases(workflow: dict[str, Any], name: str = "wf") -> dict[str, str]:
    """The phase of each node, by its name without the workflow's."""
    return {node.removeprefix(name).lstrip("."): found[1] for node, found in nodes_of(workflow).items()}


def nodes_of(workflow: dict[str, Any]) -> dict[str, tuple[Any, ...]]:
    """(type, phase, message, display name, boundary, flag) of each node by name, without what only a container says."""
    found = (workflow["status"].get("nodes") or {}).values()
    return {
        each["name"]: (
            each["type"], each["phase"], (each.get("message") or "").replace(": the step says FAIL_ME", ""),
            each["displayName"], each.get("boundaryID"), each.get("nodeFlag"),
        )
        for each in found
    }  # fmt: skip
