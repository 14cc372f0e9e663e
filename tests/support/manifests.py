"""Manifests as real clusters show them, reduced to the relevant fields."""

from datetime import UTC, datetime
from typing import Any

RUN = "0b5c2f8e-7d1a-4a43-9b25-0d1d3c1f7f10"
WF = "training-x7k2p"
T0 = int(datetime(2026, 11, 21, 10, 0, 0, tzinfo=UTC).timestamp())


def at(seconds: float) -> int:
    """UTC ns of an instant, given in seconds after the start of the scene."""
    return T0 * 10**9 + round(seconds * 1e9)


def time(seconds: float) -> str:
    """As a `Time` of the API: whole seconds, truncated."""
    return datetime.fromtimestamp(T0 + int(seconds // 1), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro(seconds: float) -> str:
    """As a `MicroTime` of the API."""
    return datetime.fromtimestamp(T0 + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def pod(
    name: str = f"{WF}-system-container-impl-1", path: str = "root.train.executor(0)", **more: Any
) -> dict[str, Any]:
    """A new pod of a KFP run; `more` goes into the status, `node` into the spec."""
    node, created = more.pop("node", None), more.pop("created", 0.3)
    return {
        "metadata": {
            "name": name, "namespace": "kubeflow", "uid": f"uid-{name}", "resourceVersion": "7",
            "creationTimestamp": time(created),
            "labels": {"pipeline/runid": RUN, "workflows.argoproj.io/workflow": WF, "workflows.argoproj.io/completed": "false"},
            "annotations": {
                "workflows.argoproj.io/node-name": f"{WF}.{path}", "workflows.argoproj.io/node-id": f"{WF}-1",
                "kubectl.kubernetes.io/default-container": "main",
            },
        },
        "spec": {"containers": [{"name": "wait"}, {"name": "main"}], **({"nodeName": node} if node else {})},
        "status": {"phase": "Pending", **more},
    }  # fmt: skip


def condition(kind: str, status: str, seconds: float, **more: str) -> dict[str, Any]:
    return {"type": kind, "status": status, "lastTransitionTime": time(seconds), "lastProbeTime": None, **more}


def ended(name: str, start: float, end: float, code: int = 0, *, reason: str = "", message: str = "") -> dict[str, Any]:
    state = {
        "exitCode": code,
        "reason": reason or ("Completed" if code == 0 else "Error"),
        "startedAt": time(start),
        "finishedAt": time(end),
    }
    return {"name": name, "restartCount": 0, "state": {"terminated": state | ({"message": message} if message else {})}}


def running(name: str, start: float) -> dict[str, Any]:
    return {"name": name, "restartCount": 0, "state": {"running": {"startedAt": time(start)}}}


def waiting(name: str, reason: str, message: str = "") -> dict[str, Any]:
    return {"name": name, "restartCount": 0, "state": {"waiting": {"reason": reason, "message": message}}}


def event(
    reason: str, message: str, seconds: float, *, name: str = f"{WF}-system-container-impl-1", **more: Any
) -> dict[str, Any]:
    """An event of an old recorder, in whole seconds; with `micro_at` of a new one, in microseconds."""
    uid = more.pop("uid", f"{name}.{reason}.{seconds}")
    fine = more.pop("micro_at", None)
    stamps: dict[str, Any] = {
        "firstTimestamp": time(seconds),
        "lastTimestamp": time(more.pop("last", seconds)),
        "count": 1,
        "eventTime": None,
    }
    if fine is not None:
        stamps = {"firstTimestamp": None, "lastTimestamp": None, "eventTime": micro(fine)}
    return {
        "metadata": {"name": uid, "namespace": "kubeflow", "uid": uid, "resourceVersion": "9", "creationTimestamp": time(seconds)},
        "involvedObject": {"kind": "Pod", "namespace": "kubeflow", "name": name, "uid": f"uid-{name}"},
        "reason": reason, "message": message, "type": "Normal", **stamps, **more,
    }  # fmt: skip


def workflow(phase: str = "", *, persisted: bool = False, created: float = 1, **status: Any) -> dict[str, Any]:
    """With no `status` it is what a metadata-only watch tells."""
    labels = {"pipeline/runid": RUN}
    if phase:
        labels["workflows.argoproj.io/phase"] = phase
    if persisted:
        labels["pipeline/persistedFinalState"] = "true"
    metadata = {"name": WF, "namespace": "kubeflow", "uid": "w", "creationTimestamp": time(created), "labels": labels}
    return {"metadata": metadata, **({"status": {"phase": phase, **status}} if status else {})}


def claim(phase: str, size: str, wanted: str = "20Gi") -> dict[str, Any]:
    return {
        "metadata": {"name": "seaweedfs-pvc", "namespace": "kubeflow", "uid": "c"},
        "spec": {"storageClassName": "managed-csi", "resources": {"requests": {"storage": wanted}}},
        "status": {"phase": phase, **({"capacity": {"storage": size}} if size else {})},
    }
