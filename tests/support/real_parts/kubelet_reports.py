"""What a kubelet tells the API server: a pod's status, its events, and what Argo's executor reports from within."""

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tests.support.real_parts.kube import STRATEGIC, Kube, Manifest, RefusedError

ARGO_LABEL = "workflows.argoproj.io/workflow"
_COMPLETE = "workflows.argoproj.io/report-outputs-completed"
GONE, _EXISTS = 404, 409
_RESULTS = "/apis/argoproj.io/v1alpha1/namespaces"
_NODE_ID = "workflows.argoproj.io/node-id"
_PATCH = {"containers": [{
    "name": "main", "image": "python:3.11-slim", "command": ["/kfp-launcher/launch"],
    "resources": {"requests": {"cpu": "500m", "memory": "64Mi"}},
}]}  # fmt: skip
_DRIVER = {"execution-id": "1", "pod-spec-patch": json.dumps(_PATCH)}  # what a KFP driver decides


@dataclass
class Placed:
    """A pod on its node since a Unix time."""

    pod: Manifest
    since_s: float


class Reports:
    """Of the kubelets of all nodes, about the pods of a namespace."""

    def __init__(self, kube: Kube, namespace: str) -> None:
        self._kube, self._namespace = kube, namespace
        self._path = f"/api/v1/namespaces/{namespace}"

    def started(self, pod: Manifest, container: str, *, pulled: bool = False) -> None:
        """A container started; `pulled`: its image's pull was told before."""
        spec = pod["spec"]
        both = [*spec.get("initContainers", ()), *spec["containers"]]
        image = next(each["image"] for each in both if each["name"] == container)
        if not pulled:
            self.tell(
                pod,
                "Pulled",
                f'Container image "{image}" already present on machine and can be accessed by the pod',
                container,
            )
        self.tell(pod, "Created", "Container created", container)
        self.tell(pod, "Started", "Container started", container)

    def report(
        self, placed: Placed, phase: str, states: Mapping[str, Manifest], *, ready: bool = True,
        conditions: list[Manifest] | None = None, **more: Any,
    ) -> None:  # fmt: skip
        """The status of a pod with these states of its containers; `more` are further fields."""
        its, spec = placed.pod["metadata"], placed.pod["spec"]
        initial, containers = (
            [_container(each, states[each["name"]]) for each in spec.get(which, ())]
            for which in ("initContainers", "containers")
        )
        alive = "True" if ready and all("running" in each["state"] for each in containers) else "False"
        begun = "True" if all("terminated" in each["state"] for each in initial) else "False"
        kinds = (
            ("PodReadyToStartContainers", "True"),
            ("Initialized", begun),
            ("Ready", alive),
            ("ContainersReady", alive),
        )
        told = [
            {"type": kind, "status": status, "lastProbeTime": None, "lastTransitionTime": stamp()}
            for kind, status in kinds
        ]
        status = {
            "phase": phase, "conditions": [*told, *(conditions or ())], "hostIP": "127.0.0.1", "podIP": "10.244.0.5",
            "podIPs": [{"ip": "10.244.0.5"}], "startTime": stamp(placed.since_s), "containerStatuses": containers,
            **({"initContainerStatuses": initial} if initial else {}), **more,
        }  # fmt: skip
        self._kube.patch(f"{self._path}/pods/{its['name']}/status", {"status": status}, STRATEGIC)

    def tell(self, pod: Manifest, reason: str, message: str, container: str = "", *, warns: bool = False) -> None:
        """An event of a pod, or of one of its containers."""
        its = pod["metadata"]
        about = {"apiVersion": "v1", "kind": "Pod", **{key: its[key] for key in ("name", "namespace", "uid")}}
        if container:
            kind = (
                "initContainers"
                if container in {e["name"] for e in pod["spec"].get("initContainers", ())}
                else "containers"
            )
            about["fieldPath"] = f"spec.{kind}{{{container}}}"
        self._kube.create(f"{self._path}/events", {
            "metadata": {"generateName": f"{its['name']}."}, "involvedObject": about, "reason": reason,
            "message": message, "type": "Warning" if warns else "Normal", "count": 1,
            "firstTimestamp": stamp(), "lastTimestamp": stamp(),
            "source": {"component": "kubelet", "host": pod["spec"]["nodeName"]}, "reportingComponent": "kubelet",
        })  # fmt: skip

    def write_result(self, pod: Manifest, exit_code: int | None = None) -> None:
        """What Argo's executor tells its controller: that it began, or, with an exit code, that all outputs are stored."""
        its = pod["metadata"]
        node = (its.get("annotations") or {}).get(_NODE_ID)
        owner = next((each for each in its.get("ownerReferences", ()) if each["kind"] == "Workflow"), None)
        if not node or not owner or all(each["name"] != "wait" for each in pod["spec"]["containers"]):
            return
        path = f"{_RESULTS}/{self._namespace}/workflowtaskresults"
        try:
            if exit_code is None:
                labels = {ARGO_LABEL: owner["name"], _COMPLETE: "false"}
                reference = {key: owner[key] for key in ("apiVersion", "kind", "name", "uid")}
                self._kube.create(path, {
                    "apiVersion": "argoproj.io/v1alpha1", "kind": "WorkflowTaskResult",
                    "metadata": {"name": node, "labels": labels, "ownerReferences": [reference]},
                })  # fmt: skip
            else:
                outputs = {"exitCode": str(exit_code), "parameters": _parameters(pod)}
                self._kube.patch(f"{path}/{node}", {"metadata": {"labels": {_COMPLETE: "true"}}, "outputs": outputs})
        except RefusedError as error:
            if error.status not in {GONE, _EXISTS}:  # a cluster without Argo, or the step's second pod
                raise


def _parameters(pod: Manifest) -> list[Manifest]:
    """The output parameters of a step's template; those of KFP's drivers let the executor run."""
    given = (each for container in pod["spec"].get("initContainers", ()) for each in container.get("env", ()))
    template = next((each["value"] for each in given if each["name"] == "ARGO_TEMPLATE"), "{}")
    declared = (json.loads(template).get("outputs") or {}).get("parameters") or ()
    return [{**each, "value": _DRIVER.get(each["name"], each["valueFrom"].get("default", ""))} for each in declared]


def stamp(at_s: float | None = None) -> str:
    """A time as Kubernetes writes it, in whole seconds; now by default."""
    return datetime.fromtimestamp(int(time.time() if at_s is None else at_s), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def running(since_s: float) -> Manifest:
    """The state of a container that runs."""
    return {"running": {"startedAt": stamp(since_s)}}


def ended(began_s: float, ended_s: float, exit_code: int, reason: str) -> Manifest:
    """The state of a container that has ended."""
    times = {"startedAt": stamp(began_s), "finishedAt": stamp(ended_s)}
    return {"terminated": {"exitCode": exit_code, "reason": reason, **times}}


def _container(spec: Manifest, state: Manifest) -> Manifest:
    alive = "running" in state
    return {
        "name": spec["name"], "state": state, "lastState": {}, "ready": alive, "restartCount": 0,
        "image": spec["image"], "imageID": "", "started": alive,
    }  # fmt: skip
