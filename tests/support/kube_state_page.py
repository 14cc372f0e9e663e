"""kube-state-metrics' page of Kubernetes objects, under its real names and labels, now or as it was at a time.

The names, labels and values are those of `names-and-help.txt` and `kube_state_metrics.txt`, recorded of a real one.
"""

import json
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from harness.model.http import HttpAnswer, HttpRequest
from harness.model.units import parse_quantity
from tests.support.servers import serving

Row = tuple[str, dict[str, str], float]
Manifest = Mapping[str, Any]
_RESOURCES = {"nvidia.com/gpu": "nvidia_com_gpu", "ephemeral-storage": "ephemeral_storage"}
_PHASES = ("Failed", "Pending", "Running", "Succeeded", "Unknown")


def seconds(text: str | None) -> float | None:
    return datetime.fromisoformat(text).timestamp() // 1 if text else None


def rows(manifest: Manifest, *, allowed: bool = False) -> Iterator[Row]:
    """The series of a pod, node or claim; with labels where they are `allowed`."""
    kind = manifest["kind"]
    if kind == "Pod":
        return _pod(manifest, allowed)
    return _node(manifest, allowed) if kind == "Node" else _claim(manifest)


def _pod(pod: Manifest, allowed: bool) -> Iterator[Row]:
    metadata, spec, status = pod["metadata"], pod["spec"], pod["status"]
    own = {"namespace": metadata.get("namespace", ""), "pod": metadata["name"], "uid": metadata["uid"]}
    yield "kube_pod_created", own, seconds(metadata["creationTimestamp"]) or 0.0
    owner: Manifest = next(iter(metadata.get("ownerReferences") or ()), {})
    kind, name = owner.get("kind", ""), owner.get("name", "")
    yield (
        "kube_pod_info",
        own | {"node": spec.get("nodeName") or "", "created_by_kind": kind, "created_by_name": name},
        1,
    )
    yield "kube_pod_owner", own | {"owner_kind": kind, "owner_name": name, "owner_is_controller": "true"}, 1
    if allowed:
        named = {f"label_{''.join(c if c.isalnum() else '_' for c in key)}": v for key, v in metadata["labels"].items()}
        yield "kube_pod_labels", own | named, 1
        path = (metadata.get("annotations") or {}).get("workflows.argoproj.io/node-name", "")
        yield "kube_pod_annotations", own | {"annotation_workflows_argoproj_io_node_name": path}, 1
    for phase in _PHASES:
        yield "kube_pod_status_phase", own | {"phase": phase}, float(status.get("phase") == phase)
    if status.get("reason"):
        yield "kube_pod_status_reason", own | {"reason": status["reason"]}, 1
    for each in status.get("conditions") or ():
        if each["type"] == "PodScheduled" and each["status"] == "True":
            yield "kube_pod_status_scheduled_time", own, seconds(each["lastTransitionTime"]) or 0.0
        elif each["type"] == "PodScheduled":
            yield "kube_pod_status_unschedulable", own, 1
    yield from _containers(status, own)
    yield from _spec(spec, own)


def _spec(spec: Manifest, own: dict[str, str]) -> Iterator[Row]:
    for volume in spec.get("volumes") or ():
        if claim := (volume.get("persistentVolumeClaim") or {}).get("claimName"):
            labels = {"volume": volume["name"], "persistentvolumeclaim": claim}
            yield "kube_pod_spec_volumes_persistentvolumeclaims_info", own | labels, 1
    for container in spec.get("containers") or ():
        image = {"container": container["name"], "image_spec": container.get("image", "")}
        yield "kube_pod_container_info", own | image, 1
        for kind in ("requests", "limits"):
            for resource, amount in ((container.get("resources") or {}).get(kind) or {}).items():
                name = _RESOURCES.get(resource, resource)
                labels = {"container": container["name"], "node": spec.get("nodeName") or "", "resource": name}
                yield f"kube_pod_container_resource_{kind}", own | labels, parse_quantity(amount)


def _containers(status: Manifest, own: dict[str, str]) -> Iterator[Row]:
    ends = list[float | None]()
    for kind in ("init_container", "container"):
        for each in status.get("initContainerStatuses" if kind == "init_container" else "containerStatuses") or ():
            container, state = own | {"container": each["name"]}, each.get("state") or {}
            waiting, ended = state.get("waiting") or {}, state.get("terminated") or {}
            if at := seconds((state.get("running") or ended).get("startedAt")):
                yield f"kube_pod_{kind}_state_started", container, at
            for what, reason in (("waiting", waiting.get("reason")), ("terminated", ended.get("reason"))):
                if reason:
                    yield f"kube_pod_{kind}_status_{what}_reason", container | {"reason": reason}, 1
            ends.append(seconds(ended.get("finishedAt")))
    if any(ends):  # of a container, even while others run
        yield "kube_pod_completion_time", own, max(filter(None, ends))


def _node(node: Manifest, allowed: bool) -> Iterator[Row]:
    metadata, own = node["metadata"], {"node": node["metadata"]["name"]}
    yield "kube_node_info", own | {"kubelet_version": "v1.36.0"}, 1
    yield "kube_node_created", own, seconds(metadata["creationTimestamp"]) or 0.0
    if allowed:
        labels = metadata.get("labels") or {}
        yield (
            "kube_node_labels",
            own | {f"label_{''.join(c if c.isalnum() else '_' for c in k)}": v for k, v in labels.items()},
            1,
        )
    for resource, amount in (node["status"].get("allocatable") or {}).items():
        name = _RESOURCES.get(resource, resource)
        yield "kube_node_status_allocatable", own | {"resource": name}, parse_quantity(amount)
    for each in node["status"].get("conditions") or ():
        for status in ("true", "false", "unknown"):
            held = float(each["status"].lower() == status)
            yield "kube_node_status_condition", own | {"condition": each["type"], "status": status}, held


def _claim(claim: Manifest) -> Iterator[Row]:
    own = {"namespace": claim["metadata"]["namespace"], "persistentvolumeclaim": claim["metadata"]["name"]}
    for phase in ("Bound", "Lost", "Pending"):
        yield (
            "kube_persistentvolumeclaim_status_phase",
            own | {"phase": phase},
            float(claim["status"]["phase"] == phase),
        )
    size = parse_quantity(claim["spec"]["resources"]["requests"]["storage"])
    yield "kube_persistentvolumeclaim_resource_requests_storage_bytes", own, size


# --- as it was --------------------------------------------------------------------------------------------------------


def as_of(manifest: Manifest, at_s: float) -> dict[str, Any] | None:
    """The object as kube-state-metrics saw it at a time, of its last state; None where it was not there."""
    metadata = manifest["metadata"]
    if (seconds(metadata["creationTimestamp"]) or 0.0) > at_s:
        return None
    if manifest["kind"] != "Pod":
        return dict(manifest)
    status, scheduled = manifest["status"], True
    conditions = [each for each in status.get("conditions") or () if (seconds(each["lastTransitionTime"]) or 0) <= at_s]
    placed = [each for each in conditions if each["type"] == "PodScheduled"]
    scheduled = any(each["status"] == "True" for each in placed) or not any(
        each["type"] == "PodScheduled" for each in status.get("conditions") or ()
    )
    kept = [each for each in conditions if each["type"] != "PodScheduled" or (each["status"] == "True") == scheduled]
    over = _over(manifest)
    ended = over is not None and over <= at_s
    containers = {
        key: [_container_as_of(each, at_s) for each in status.get(key) or ()]
        for key in ("initContainerStatuses", "containerStatuses")
    }
    running = any(
        "running" in each["state"] or "terminated" in each["state"] for each in containers["containerStatuses"]
    )
    phase = status.get("phase") if ended else "Running" if running else "Pending"
    now = {"phase": phase, "conditions": kept, **containers} | ({"reason": status.get("reason")} if ended else {})
    spec = manifest["spec"] if scheduled else {**manifest["spec"], "nodeName": None}
    return {**manifest, "spec": spec, "status": now}


def _over(pod: Manifest) -> float | None:
    status = pod["status"]
    if status.get("phase") not in {"Succeeded", "Failed"}:
        return None
    ends = [seconds(((each.get("state") or {}).get("terminated") or {}).get("finishedAt"))
            for each in status.get("containerStatuses") or ()]  # fmt: skip
    stamps = [seconds(each["lastTransitionTime"]) for each in status.get("conditions") or ()]
    return max(filter(None, ends), default=None) or max(filter(None, stamps), default=0.0)


def _container_as_of(container: Manifest, at_s: float) -> dict[str, Any]:
    state = container.get("state") or {}
    known = state.get("running") or state.get("terminated") or {}
    started, finished = seconds(known.get("startedAt")), seconds(known.get("finishedAt"))
    if "waiting" in state:
        return {**container, "state": state}
    if started is None or started > at_s:
        return {**container, "state": {"waiting": {"reason": "ContainerCreating"}}}
    if finished is None or finished > at_s:
        return {**container, "state": {"running": {"startedAt": known["startedAt"]}}}
    return {**container, "state": state}


# --- as text ----------------------------------------------------------------------------------------------------------


def line(row: Row, at_s: float | None = None, more: Mapping[str, str] | None = None) -> str:
    """A line of the page; with a time as a dump of many scrapes has it."""
    name, labels, value = row
    inside = ",".join(f'{key}="{text}"' for key, text in (labels | dict(more or {})).items())
    return f"{name}{{{inside}}} {value!r}" + (f" {at_s}" if at_s is not None else "")


@contextmanager
def page(api: str, paths: Sequence[str], *, allowed: bool = False) -> Iterator[str]:
    """Serve the page of what a Kubernetes API lists, as kube-state-metrics does; yields its address."""
    kinds = {"pods": "Pod", "nodes": "Node", "persistentvolumeclaims": "PersistentVolumeClaim"}

    def answer(_: HttpRequest) -> HttpAnswer:
        lines = []
        for path in paths:
            with urllib.request.urlopen(f"{api}{path}") as listed:
                items = json.load(listed)["items"] or ()
            for item in items:
                lines += map(line, rows({**item, "kind": kinds[path.rpartition("/")[2]]}, allowed=allowed))
        body = ("\n".join(lines) + "\n").encode()
        return HttpAnswer(200, body, {"content-type": "text/plain; version=0.0.4"})

    with serving(answer) as url:
        yield url
