"""A small workflow controller for KFP's workflows: creates pods through the real API server and reports their states.

It reconciles as Argo does, and creates what a real one creates: pods with init, wait and main containers, a status with
every node, labels, events of the workflow. A pod that a quota refuses leaves a Pending node with the server's message.
"""

import json
import queue
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from harness.model.argo_nodes import node_id
from tests.support.real_parts.kube import Kube, Manifest, RefusedError
from tests.support.real_parts.kubelet_reports import ARGO_LABEL, stamp
from tests.support.real_parts.run_nodes import (
    EXECUTOR,
    FAILED,
    PENDING,
    RUNNING,
    SUCCEEDED,
    PodNode,
    PodState,
    RunNodes,
    Task,
)

ARGO = "/apis/argoproj.io/v1alpha1"
RUN_LABEL = "pipeline/runid"
NODE_NAME = "workflows.argoproj.io/node-name"
_TASKS = "rehearsal/tasks"  # of the annotation in which KFP's stand-in hands over the pipeline
_PHASE, _COMPLETED = "workflows.argoproj.io/phase", "workflows.argoproj.io/completed"
_AGAIN_S = 0.5  # between two attempts at a pod that was refused
_WORKERS = 4
_GATHER_S = 0.1  # changes of so long are one reconciliation
_EXEC_IMAGE, _DRIVER_IMAGE = "quay.io/argoproj/argoexec:v4.0.8", "ghcr.io/kubeflow/kfp-driver:2.17.0"
_LAUNCHER_IMAGE = "ghcr.io/kubeflow/kfp-launcher:2.17.0"


def crd(kind: str, scope: str = "Namespaced") -> Manifest:
    """The definition of one of Argo's types, which takes any content."""
    singular = kind.lower()
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{singular}s.argoproj.io"},
        "spec": {
            "group": "argoproj.io",
            "names": {"kind": kind, "listKind": f"{kind}List", "plural": f"{singular}s", "singular": singular},
            "scope": scope,
            "versions": [{"name": "v1alpha1", "served": True, "storage": True, "schema": schema}],
        },
    }


WORKFLOW_TYPE = crd("Workflow")


def workflow_of(run: str, pipeline: str, display_name: str, tasks: tuple[Task, ...]) -> Manifest:
    """The Workflow that KFP creates for a run."""
    return {
        "apiVersion": "argoproj.io/v1alpha1",
        "kind": "Workflow",
        "metadata": {
            "generateName": f"{pipeline}-",
            "labels": {RUN_LABEL: run},
            "annotations": {
                "pipelines.kubeflow.org/run_name": display_name,
                _TASKS: json.dumps([vars(task) for task in tasks]),
            },
        },
        "spec": {"entrypoint": "entrypoint", "serviceAccountName": "pipeline-runner"},
    }


@dataclass
class _Run:
    nodes: RunNodes
    uid: str
    labels: dict[str, str]
    created_s: float
    pods: dict[str, PodState] = field(default_factory=dict)
    reported: dict[str, PodState] | None = None


@dataclass
class Controller:
    """The controller of one namespace.

    Args:
        kube: of the cluster.
        namespace: whose workflows it carries out.
        node_selector: of all pods.
        report: told each status that a workflow has reached, as KFP's persistence agent is.
    """

    kube: Kube
    namespace: str
    node_selector: Mapping[str, str]
    report: Callable[[str, str, Manifest], None]
    _runs: dict[str, _Run] = field(default_factory=dict)
    _changed: "queue.Queue[tuple[str, Manifest]]" = field(default_factory=queue.Queue)
    _refused: set[str] = field(default_factory=set)

    def watch(self, kind: str, over: threading.Event) -> None:
        """Follow `workflows` or `pods`."""
        path = f"{ARGO if kind == 'workflows' else '/api/v1'}/namespaces/{self.namespace}/{kind}"
        self.kube.follow(path, lambda change, seen: self._changed.put((change, seen)), over)

    def work(self, over: threading.Event) -> None:
        """Reconcile what has changed."""
        with ThreadPoolExecutor(_WORKERS) as workers:
            while not over.wait(_GATHER_S):
                due = {name for name in (self._see(*change) for change in self._waiting()) if name}
                list(workers.map(self._reconcile, sorted(due | self._refused)))

    def _waiting(self) -> list[tuple[str, Manifest]]:
        found = []
        try:
            found.append(self._changed.get(timeout=_AGAIN_S))
            while True:
                found.append(self._changed.get_nowait())
        except queue.Empty:
            return found

    def _see(self, change: str, seen: Manifest) -> str:
        """Take in a change; the workflow that it concerns, "" for none."""
        its = seen["metadata"]
        if seen["kind"] == "Workflow":
            if change != "ADDED" or its["name"] in self._runs:
                return ""
            tasks = tuple(
                Task(**{**each, "after": tuple(each["after"])}) for each in json.loads(its["annotations"][_TASKS])
            )
            created_s = datetime.fromisoformat(its["creationTimestamp"]).timestamp()
            self._runs[its["name"]] = _Run(RunNodes(its["name"], tasks), its["uid"], its["labels"], created_s)
            return str(its["name"])
        workflow = its.get("labels", {}).get(ARGO_LABEL, "")
        run = self._runs.get(workflow)
        if run is None or change == "DELETED":
            return ""
        node = its["annotations"][NODE_NAME]
        state = _state(seen, run.pods.get(node, PodState(started_s=time.time())))
        if run.pods.get(node) == state:
            return ""
        run.pods[node] = state
        return str(workflow)

    def _reconcile(self, name: str) -> None:
        run = self._runs[name]
        self._refused.discard(name)
        if run.nodes.phase(run.pods) == RUNNING:
            for node in run.nodes.due(run.pods):
                if node.name not in run.pods or run.pods[node.name].refused:
                    self._create(name, run, node)
        if run.pods == run.reported:
            return
        self._label_ended(name, run)
        run.reported = dict(run.pods)
        self._publish(name, run)

    def _label_ended(self, name: str, run: _Run) -> None:
        for node in run.nodes.pod_nodes():
            before = (run.reported or {}).get(node.name)
            if node.name in run.pods and run.pods[node.name].over and not (before and before.over):
                path = f"/api/v1/namespaces/{self.namespace}/pods/{_pod_name(name, node)}"
                self.kube.patch(path, {"metadata": {"labels": {_COMPLETED: "true"}}})

    def _create(self, name: str, run: _Run, node: PodNode) -> None:
        known = run.pods.get(node.name, PodState(started_s=time.time()))
        try:
            self.kube.create(f"/api/v1/namespaces/{self.namespace}/pods", self._pod(name, run, node))
            run.pods[node.name] = replace(known, message="")
        except RefusedError as error:
            if "exceeded quota" not in str(error):
                raise
            run.pods[node.name] = replace(known, message=str(error))
            self._refused.add(name)

    def _publish(self, name: str, run: _Run) -> None:
        status = run.nodes.status(run.pods, run.created_s, time.time())
        over = status["phase"] != RUNNING
        labels = {_PHASE: status["phase"], _COMPLETED: str(over).lower()}
        path = f"{ARGO}/namespaces/{self.namespace}/workflows/{name}"
        self.kube.patch(path, {"metadata": {"labels": labels}, "status": status})
        self.report(run.labels[RUN_LABEL], name, status)
        if over:
            self.kube.patch(path, {"metadata": {"labels": {"pipeline/persistedFinalState": "true"}}})
        if over or len(run.reported or {}) == 1:
            self._tell(name, run, status["phase"])

    def _tell(self, name: str, run: _Run, phase: str) -> None:
        words = {RUNNING: "Workflow Running", SUCCEEDED: "Workflow completed", FAILED: ""}
        about = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "name": name, "namespace": self.namespace}
        self.kube.create(f"/api/v1/namespaces/{self.namespace}/events", {
            "metadata": {"generateName": f"{name}."}, "involvedObject": {**about, "uid": run.uid},
            "reason": f"Workflow{phase}", "message": words[phase], "type": "Warning" if phase == FAILED else "Normal",
            "count": 1, "firstTimestamp": stamp(), "lastTimestamp": stamp(),
            "source": {"component": "workflow-controller"},
        })  # fmt: skip

    def _pod(self, name: str, run: _Run, node: PodNode) -> Manifest:
        """The pod of a node, as far as the scheduler and an observer look at it."""
        executes = node.template == EXECUTOR
        task = node.task if executes and node.task else Task("", image=_DRIVER_IMAGE, cpu="100m", memory="64Mi")
        requests = {key: value for key, value in (("cpu", task.cpu), ("memory", task.memory)) if value != "0"}
        resources = {"requests": requests, "limits": {"memory": task.memory}} if requests else {}
        launcher = [{"name": "kfp-launcher", "image": _LAUNCHER_IMAGE}] if executes else []
        owner = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "name": name, "uid": run.uid}
        return {
            "metadata": {
                "name": _pod_name(name, node),
                "labels": {
                    **run.labels, ARGO_LABEL: name, _COMPLETED: "false", "pipelines.kubeflow.org/v2_component": "true",
                },
                "annotations": {
                    "kubectl.kubernetes.io/default-container": "main",
                    "pipelines.kubeflow.org/runtime-role": "launcher" if executes else "driver",
                    "workflows.argoproj.io/node-id": node_id(node.name, name),
                    NODE_NAME: node.name,
                },
                "ownerReferences": [{**owner, "controller": True}],
            },
            "spec": {
                "restartPolicy": "Never",
                "nodeSelector": dict(self.node_selector),
                "initContainers": [{"name": "init", "image": _EXEC_IMAGE}, *launcher],
                "containers": [
                    {"name": "wait", "image": _EXEC_IMAGE},
                    {"name": "main", "image": task.image, "resources": resources},
                ],
            },
        }  # fmt: skip


def _pod_name(workflow: str, node: PodNode) -> str:
    return f"{workflow}-{node.template}-{node_id(node.name, workflow).rpartition('-')[2]}"


def _state(pod: Manifest, known: PodState) -> PodState:
    """What a pod's manifest says, as Argo takes it."""
    status: dict[str, Any] = pod.get("status", {})
    phase, host = status.get("phase", PENDING), pod["spec"].get("nodeName", "")
    if phase not in (SUCCEEDED, FAILED):
        return replace(known, phase=phase, host=host, message="")
    main = next(each["state"]["terminated"] for each in status["containerStatuses"] if each["name"] == "main")
    said = f"main: {main['reason']} (exit code {main['exitCode']})" if main["exitCode"] else ""
    ended_s = datetime.fromisoformat(main["finishedAt"]).timestamp()
    return replace(known, phase=phase, host=host, message=said, exit_code=main["exitCode"], finished_s=ended_s)
