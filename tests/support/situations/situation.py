"""A situation of the truth table, and the place where it happens: a namespace of a real cluster with Argo's controller."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.real_kubernetes import RealCluster, admin
from tests.support.real_parts.kube import Kube, Manifest, RefusedError
from tests.support.real_parts.kubelet import Fate, Kubelet
from tests.support.situations.controller import PROGRAM, WorkflowController, add_argo

_FOREVER = Fate(1e6)


@dataclass(frozen=True)
class Situation:
    """What is made to happen, and what must be said first.

    Attributes:
        truth: what limits the test, for the table's reader.
        first: patterns of findings' names, of which one must come first; with none, nothing may be claimed at 80 % or more.
        says: a pattern that the first finding's text must match.
        also: further findings that are true here.
        runs: of the test, all at once unless `over` says otherwise ("30s").
        spec: laid over the workflow's specification.
        pod: laid over the template of its step.
        nodes: cores of each.
        controller: arguments of Argo's controller.
        settings: of the controller's ConfigMap.
        prepare: makes the situation, before the controller starts; `ready`: before the load; `during`: while it runs.
        drain: how long ends are waited for.
        etcd: arguments of an etcd of its own.
        short: part of the form that CI runs.
    """

    name: str
    truth: str
    first: tuple[str, ...] = ()
    says: str = ""
    also: tuple[str, ...] = ()
    runs: int = 30
    over: str = ""
    spec: Mapping[str, Any] = field(default_factory=dict)
    pod: Mapping[str, Any] = field(default_factory=dict)
    nodes: tuple[str, ...] = ("8", "8")
    controller: tuple[str, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    prepare: Callable[["Place"], None] | None = None
    ready: Callable[["Place"], None] | None = None
    during: Callable[["Place"], None] | None = None
    drain: str = "45s"
    etcd: tuple[str, ...] = ()
    short: bool = False

    def workflow(self) -> Manifest:
        """One step that works for three seconds, with what the situation lays over it."""
        step = {
            "name": "main",
            "container": {"image": "python:3.11-slim", "command": ["python", "-c"], "args": ["print(1)"],
                          "resources": {"requests": {"cpu": "500m", "memory": "64Mi"}}},
        }  # fmt: skip
        spec = {"entrypoint": "main", "templates": [_laid(step, self.pod)]}
        return {
            "apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": {"generateName": f"{self.name}-"},
            "spec": {**spec, **self.spec},
        }  # fmt: skip


def _laid(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    laid = dict(under)
    for key, value in over.items():
        both = isinstance(value, Mapping) and isinstance(laid.get(key), Mapping)
        laid[key] = _laid(laid[key], value) if both else value
    return laid


@dataclass
class Place:
    """Where a situation happens.

    Attributes:
        namespace: of the workflows and of the controller.
        nodes: names, in the situation's order.
        over: set when the test has ended.
        notes: what was made to happen, with its seconds since the load began.
        errors: of the rig; a situation with any shows nothing.
    """

    cluster: RealCluster
    kube: Kube
    namespace: str
    folder: Path
    controller: WorkflowController
    kubelet: Kubelet
    stack: ExitStack
    nodes: tuple[str, ...] = ()
    over: threading.Event = field(default_factory=threading.Event)
    errors: list[str] = field(default_factory=list)

    @property
    def path(self) -> str:
        """Of the namespace."""
        return f"/api/v1/namespaces/{self.namespace}"

    def create(self, kind: str, manifest: Manifest, group: str = "") -> Manifest:
        """An object of the namespace; `kind` is its plural."""
        root = f"/apis/{group}/namespaces/{self.namespace}" if group else self.path
        return self.kube.create(f"{root}/{kind}", manifest)

    def wait(self, seconds: float) -> bool:
        """Let time pass; whether the test goes on."""
        return not self.over.wait(seconds)

    def pods(self, phase: str = "") -> list[Manifest]:
        """The steps' pods, or those in a phase."""
        found = self.kube.get(f"{self.path}/pods?labelSelector=workflows.argoproj.io/workflow")["items"]
        return [each for each in found if not phase or each["status"].get("phase") == phase]

    def begin(self, job: Callable[["Place"], None]) -> None:
        """Do it beside the test."""
        self._thread(lambda _: job(self))

    def _thread(self, job: Callable[[threading.Event], None]) -> None:
        def run() -> None:
            try:
                job(self.over)
            except Exception as error:  # noqa: BLE001  # whatever it is, the situation must not go on unnoticed
                if not self.over.is_set():
                    self.errors.append(repr(error))

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        self.stack.callback(thread.join, 10)


@contextmanager
def placed(situation: Situation, cluster: RealCluster, folder: Path) -> Iterator[Place]:
    """A namespace with nodes, kubelets and the controller, until the end of the block."""
    kube, namespace = admin(cluster, patient=True), f"argo-{situation.name}"
    folder.mkdir(parents=True, exist_ok=True)
    add_argo(kube)
    kube.create("/api/v1/namespaces", {"metadata": {"name": namespace}})

    def fate(pod: Manifest) -> Fate:
        steps = (pod["metadata"].get("labels") or {}).get("app") != PROGRAM
        return Fate.of(pod, Fate(3.0)) if steps else _FOREVER

    with ExitStack() as stack:
        controller = WorkflowController(
            cluster, kube, namespace, folder, situation.controller, situation.settings
        )  # fmt: skip
        place = Place(cluster, kube, namespace, folder, controller, Kubelet(kube, namespace, fate), stack)
        stack.callback(_clear, place)
        place.nodes = tuple(f"{situation.name}-{number}" for number in range(len(situation.nodes)))
        for name, cpu in zip(place.nodes, situation.nodes, strict=True):
            cluster.add_node(name, cpu=cpu)
            stack.callback(_remove, kube, name)
        for job in (place.kubelet.watch, place.kubelet.work):
            place._thread(job)
        stack.callback(place.over.set)
        if situation.prepare:
            situation.prepare(place)
        stack.callback(controller.close)
        controller.install(place.nodes[0])
        controller.start()
        place._thread(controller.keep)
        stack.callback(place.over.set)
        yield place


def _clear(place: Place) -> None:
    workflows = f"/apis/argoproj.io/v1alpha1/namespaces/{place.namespace}/workflows"
    for path in (workflows, place.path, f"{place.path}/pods?gracePeriodSeconds=0"):
        with suppress(RefusedError):  # a full etcd takes no deletion
            place.kube.delete(path)


def _remove(kube: Kube, name: str) -> None:
    for path in (f"/api/v1/nodes/{name}", f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{name}"):
        with suppress(RefusedError):  # the situation has removed it
            kube.delete(path)


def arguments(situation: Situation, place: Place, manifest: Path) -> Sequence[str]:
    """Of Locust."""
    load = ["--schedule", "spread", "--over", situation.over] if situation.over else ["--schedule", "burst"]
    return [
        "--host", "kubeconfig", "--namespace", place.namespace, "--platform-namespace", place.namespace,
        "--workflow", str(manifest), *load, "--runs", str(situation.runs), "--drain", situation.drain,
        "--run-name", situation.name,
    ]  # fmt: skip
