"""The status of a pod and its containers, as written by a kubelet."""

from harness.simulator.cluster.kubelet import SHUT_DOWN, SIGKILLED
from harness.simulator.cluster.objects import DISRUPTED_BY_GC
from harness.simulator.kfp.view import Stamp
from harness.simulator.kube_api import Manifest
from harness.simulator.kube_objects.snapshots import PodSnapshot, pod_uid_of, uid
from harness.simulator.workflows.launcher import WAIT_FAILED
from harness.simulator.workflows.templates import EXEC_IMAGE

WAIT = "wait"
SIDECAR, _PROXY = "istio-proxy", "docker.io/istio/proxyv2:1.24.2"


def pod_uid(pod: PodSnapshot) -> str:
    """The pod's UID, from its name and creation time."""
    return pod_uid_of(pod.namespace, pod.name, pod.created)


def pod_ip(pod: PodSnapshot) -> str:
    """The pod's address, "" before it has one."""
    if pod.pulled is None or not pod.node_ip:
        return ""
    number = int(pod_uid(pod)[:4], 16)
    return f"10.244.{number >> 8}.{number & 255 or 1}"


def init_containers(pod: PodSnapshot) -> list[tuple[str, str]]:
    """Names and images of the init containers of a workflow's pod."""
    inits = [("init", EXEC_IMAGE)]
    if pod.role == "executor":
        inits.append(("kfp-launcher", pod.images[1]))
    return inits


def render_status(pod: PodSnapshot, stamp: Stamp) -> Manifest:
    """The status in the pod's manifest."""
    if pod.disrupted == DISRUPTED_BY_GC:  # nobody knows how its containers ended: only the phase shows that it did
        pod = pod._replace(finished=None)
    requests = pod.shape.cpu or pod.shape.memory
    status: Manifest = {
        "phase": pod.phase,
        "qosClass": "Burstable" if requests or any(pod.limits) else "BestEffort",
        "conditions": _conditions(pod, stamp),
    }
    if pod.disrupted and (pod.deleting is not None or pod.reason == SHUT_DOWN):
        why = dict(zip(("reason", "message"), pod.disrupted, strict=True))
        since = pod.finished if pod.deleting is None else pod.deleting
        status["conditions"].append(_condition("DisruptionTarget", "True", stamp(since or 0.0), why))
    if pod.by_kubelet:
        status |= {"reason": pod.reason, "message": pod.message}
    if pod.nominated:
        status["nominatedNodeName"] = pod.nominated
    if pod.scheduled is None:
        return status
    status |= {"hostIP": pod.node_ip, "hostIPs": [{"ip": pod.node_ip}], "startTime": stamp(pod.scheduled)}
    if pod_ip(pod):
        status |= {"podIP": pod_ip(pod), "podIPs": [{"ip": pod_ip(pod)}]}
    main = _container_status(pod, pod.owner.container["name"], pod.images[0], _main_state(pod, stamp))
    status["containerStatuses"] = [main]
    if pod.owner.workflow:
        status["initContainerStatuses"] = [
            _container_status(pod, name, image, _init_state(pod, stamp), init=True)
            for name, image in init_containers(pod)
        ]
        status["containerStatuses"].insert(0, _container_status(pod, WAIT, EXEC_IMAGE, _wait_state(pod, stamp)))
    if _beside(pod):
        status["containerStatuses"].append(_container_status(pod, SIDECAR, _PROXY, _sidecar_state(pod, stamp)))
    return status


def _conditions(pod: PodSnapshot, stamp: Stamp) -> list[Manifest]:
    if pod.scheduled is None:
        if pod.unschedulable is None:
            return []
        why = {"reason": "Unschedulable", "message": pod.explanation}
        if pod.gated:  # as kube-apiserver writes it (applySchedulingGatedCondition of its pods' strategy)
            message = "Scheduling is blocked due to non-empty scheduling gates"
            why = {"reason": "SchedulingGated", "message": message}
        return [_condition("PodScheduled", "False", stamp(pod.unschedulable), why)]
    scheduled = stamp(pod.scheduled)
    unready = {"reason": "ContainersNotReady", "message": "containers with unready status: [wait main]"}
    if pod.started is None:
        why = {"reason": "ContainersNotInitialized", "message": "containers with incomplete status: [init]"}
        initialized = _condition("Initialized", "False", scheduled, why)
        ready = [_condition(kind, "False", scheduled, unready) for kind in ("Ready", "ContainersReady")]
    else:
        initialized = _condition("Initialized", "True", stamp(pod.started))
        if pod.finished is not None:
            over = {"reason": "PodCompleted" if pod.phase == "Succeeded" else "PodFailed"}
            ready = [_condition(kind, "False", stamp(pod.finished), over) for kind in ("Ready", "ContainersReady")]
        elif pod.main_ended is not None:
            partly = {"reason": "ContainersNotReady", "message": "containers with unready status: [main]"}
            ready = [_condition(kind, "False", stamp(pod.main_ended), partly) for kind in ("Ready", "ContainersReady")]
        else:
            ready = [_condition(kind, "True", stamp(pod.started)) for kind in ("Ready", "ContainersReady")]
    if pod.unreachable is not None and pod.finished is None:
        ready[0] = _condition("Ready", "False", stamp(pod.unreachable))
    sandbox = [_condition("PodReadyToStartContainers", "True", stamp(pod.pulled))] if pod.pulled is not None else []
    return [*sandbox, initialized, *ready, _condition("PodScheduled", "True", scheduled)]


def _condition(kind: str, status: str, at: str, why: Manifest | None = None) -> Manifest:
    return {"type": kind, "status": status, "lastProbeTime": None, "lastTransitionTime": at, **(why or {})}


def _init_state(pod: PodSnapshot, stamp: Stamp) -> Manifest:
    if pod.pulled is None:
        return {"waiting": {"reason": "PodInitializing"}}
    if pod.started is None:
        return {"running": {"startedAt": stamp(pod.pulled)}}
    return _terminated(0, "Completed", "", stamp(pod.pulled), stamp(pod.started))


def _main_state(pod: PodSnapshot, stamp: Stamp) -> Manifest:
    if pod.words is not None and pod.words.waiting and pod.started is None:
        return {"waiting": {"reason": pod.words.waiting, "message": pod.words.message}}
    if pod.started is None:
        return {"waiting": {"reason": "PodInitializing"}}
    if pod.main_ended is None:
        return {"running": {"startedAt": stamp(pod.started)}}
    if pod.by_kubelet:
        return _terminated(pod.exit_code, "Error", "", stamp(pod.started), stamp(pod.main_ended))
    return _terminated(pod.exit_code, pod.reason, pod.message, stamp(pod.started), stamp(pod.main_ended))


def _beside(pod: PodSnapshot) -> bool:
    """Whether it has a container of a service mesh, about which something is stated."""
    return pod.words is not None and pod.words.about == "Container" and pod.started is not None


def _sidecar_state(pod: PodSnapshot, stamp: Stamp) -> Manifest:
    if pod.finished is None or pod.words is None or pod.words.source != "terminated":
        return {"running": {"startedAt": stamp(pod.started or 0.0)}}
    return _terminated(SIGKILLED, pod.words.reason, "", stamp(pod.started or 0.0), stamp(pod.finished))


def _wait_state(pod: PodSnapshot, stamp: Stamp) -> Manifest:
    if pod.started is None:
        return {"waiting": {"reason": "PodInitializing"}}
    if pod.finished is None and pod.main_ended is not None and _beside(pod):
        return _terminated(0, "Completed", "", stamp(pod.started), stamp(pod.main_ended))
    if pod.finished is None:
        return {"running": {"startedAt": stamp(pod.started)}}
    if pod.by_kubelet:
        return _terminated(pod.exit_code, "Error", "", stamp(pod.started), stamp(pod.finished))
    code, reason = (WAIT_FAILED, "Error") if pod.wait_error else (0, "Completed")
    return _terminated(code, reason, pod.wait_error, stamp(pod.started), stamp(pod.finished))


def _terminated(code: int, reason: str, message: str, started: str, finished: str) -> Manifest:
    state = {"exitCode": code, "reason": reason, "startedAt": started, "finishedAt": finished}
    return {"terminated": state | ({"message": message} if message else {})}


def _container_status(pod: PodSnapshot, name: str, image: str, state: Manifest, *, init: bool = False) -> Manifest:
    runs = "running" in state
    status: Manifest = {
        "name": name,
        "image": image,
        "imageID": "",
        "ready": not init and runs,
        "started": runs,
        "restartCount": 0,
        "state": state,
        "lastState": {},
    }
    if "waiting" not in state:
        status["containerID"] = f"containerd://{uid(pod.name, name).replace('-', '')}"
        status["imageID"] = f"{image.partition(':')[0]}@sha256:{uid(image).replace('-', '') * 2}"
    if init and state.get("terminated", {}).get("exitCode") == 0:
        status["ready"] = True
    return status
