"""Argo's real workflow-controller as the installation runs it: a Deployment with its pod, and a process beside the cluster."""

import json
import os
import subprocess
import threading
import time
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.e2e import free_port
from tests.support.real_kubernetes import RealCluster, start
from tests.support.real_parts.kube import Kube, Manifest, add_types, crd
from tests.support.real_parts.kubelet_reports import ended, running, stamp
from tests.support.servers import until

PROGRAM = "workflow-controller"
SETTINGS = "workflow-controller-configmap"
VERSION = "v4.0.5"
_SHOWN = 1000  # of its log
# On a busy machine it may be late with its lease, which it isn't to lose for that.
_PATIENTLY = {"LEADER_ELECTION_LEASE_DURATION": "60s", "LEADER_ELECTION_RENEW_DEADLINE": "40s"}
_KINDS = (
    "Workflow", "WorkflowTemplate", "CronWorkflow", "WorkflowEventBinding", "WorkflowTaskSet", "WorkflowTaskResult",
    "WorkflowArtifactGCTask",
)  # fmt: skip


def program() -> Path:
    """The controller's path; skips without one."""
    found = Path(os.environ.get("KUBEBUILDER_ASSETS", "")) / PROGRAM
    if not found.exists():
        pytest.skip(f"the folder named by KUBEBUILDER_ASSETS holds no {PROGRAM} (Argo's, {VERSION})")
    return found


def add_argo(kube: Kube) -> None:
    """Let the cluster know all of Argo's types."""
    add_types(kube, *map(crd, _KINDS), crd("ClusterWorkflowTemplate", "Cluster"))


@dataclass
class WorkflowController:
    """The controller of one namespace; its pod's status is reported as its kubelet would.

    Attributes:
        arguments: of the program, beside those that the rig needs.
        settings: of its ConfigMap.
        port: of its metrics.
    """

    cluster: RealCluster
    kube: Kube
    namespace: str
    folder: Path
    arguments: Sequence[str] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    port: int = field(default_factory=free_port)
    pod: str = ""
    _restarts: int = 0
    _down: bool = False  # on purpose
    _stack: ExitStack = field(default_factory=ExitStack)
    _process: subprocess.Popen[bytes] | None = None

    def install(self, node: str) -> None:
        """Create the ConfigMap, the Deployment, and its pod on a node."""
        path = f"/api/v1/namespaces/{self.namespace}"
        metrics = {"metricsConfig": json.dumps({"enabled": True, "port": self.port, "secure": False})}
        self.kube.create(f"{path}/configmaps", {"metadata": {"name": SETTINGS}, "data": {**metrics, **self.settings}})
        labels = {"app": PROGRAM}
        container = {
            "name": PROGRAM, "image": f"quay.io/argoproj/{PROGRAM}:{VERSION}", "command": [PROGRAM],
            "args": ["--namespaced", *self.arguments], "ports": [{"name": "metrics", "containerPort": self.port}],
        }  # fmt: skip
        pod = {"metadata": {"labels": labels}, "spec": {"nodeName": node, "containers": [container]}}
        self.kube.create(f"/apis/apps/v1/namespaces/{self.namespace}/deployments", {
            "metadata": {"name": PROGRAM, "labels": labels},
            "spec": {"replicas": 1, "strategy": {"type": "Recreate"}, "selector": {"matchLabels": labels}, "template": pod},
        })  # fmt: skip
        until(self._pods, "the controller's pod")
        self.pod = self._pods()[0]["metadata"]["name"]

    def _pods(self) -> list[Manifest]:
        chosen = f"/api/v1/namespaces/{self.namespace}/pods?labelSelector=app%3D{PROGRAM}"
        found: list[Manifest] = self.kube.get(chosen)["items"]
        return found

    def start(self) -> None:
        """Start it; it is ready when it serves its metrics and has taken the lease."""
        command = [
            str(program()), "--kubeconfig", str(self.cluster.kubeconfig), "--namespaced",
            "--managed-namespace", self.namespace, "--namespace", self.namespace, "--configmap", SETTINGS,
            "--executor-image", f"quay.io/argoproj/argoexec:{VERSION}", "--loglevel", "warn", *self.arguments,
        ]  # fmt: skip
        self._down = False
        self._process = start(self._stack, self.folder, command, {**_PATIENTLY, "LEADER_ELECTION_IDENTITY": PROGRAM})
        until(self._answers, "the workflow controller", 60)
        self._report(running(time.time()))

    def _answers(self) -> bool:
        if self._process is None or self._process.poll() is not None:
            log = (self.folder / f"{PROGRAM}.log").read_text(errors="replace")
            pytest.skip(f"{PROGRAM} did not start: {log[-_SHOWN:].strip()}")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=2) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def kill(self) -> None:
        """End it as the kernel does for memory; its pod says so."""
        self._down = True
        self._end(137, "OOMKilled")

    def _end(self, exit_code: int, reason: str) -> None:
        if self._process is not None:
            self._process.kill()
            self._stack.close()
            self._restarts += 1
            self._report(ended(time.time(), time.time(), exit_code, reason))

    def keep(self, over: threading.Event) -> None:
        """Start it again when it has ended by itself, as its kubelet does: without its lease it exits."""
        while not over.wait(1.0):
            if not self._down and self._process is not None and self._process.poll() is not None:
                self._end(1, "Error")
                with suppress(pytest.skip.Exception):  # it ended again
                    self.start()

    def restart(self, arguments: Sequence[str]) -> None:
        """Another one with these arguments, as a rollout does: its Deployment has another pod then."""
        self.kill()
        self.arguments, before = arguments, self.pod
        deployment = f"/apis/apps/v1/namespaces/{self.namespace}/deployments/{PROGRAM}"
        template = self.kube.get(deployment)["spec"]["template"]
        template["spec"]["containers"][0]["args"] = ["--namespaced", *arguments]
        self.kube.patch(deployment, {"spec": {"template": template}})
        until(lambda: [each for each in self._pods() if each["metadata"]["name"] != before], "the controller's new pod")
        until(lambda: len(self._pods()) == 1, "the controller's old pod is gone")
        self.pod = self._pods()[0]["metadata"]["name"]
        self.start()

    def _report(self, state: Manifest) -> None:
        alive = "running" in state
        status = {
            "name": PROGRAM, "image": f"quay.io/argoproj/{PROGRAM}:{VERSION}", "imageID": "", "ready": alive,
            "started": alive, "restartCount": self._restarts, "state": state, "lastState": {},
        }  # fmt: skip
        self.kube.patch(
            f"/api/v1/namespaces/{self.namespace}/pods/{self.pod}/status",
            {"status": {"phase": "Running", "containerStatuses": [status], "startTime": stamp()}},
        )

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
        self._stack.close()
