"""Pods as a kubelet and Argo write them.

A pod of a KFP v2 run carries the run's id in the label ``pipeline/runid``, its workflow in
``workflows.argoproj.io/workflow``, and where it stands in the workflow in the annotation
``workflows.argoproj.io/node-name``: ``training-x7k2p.root.prepare-driver`` is the driver of the task *prepare*, and
``training-x7k2p.root.prepare.executor`` its executor. A real cluster shows no label with the task's name.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from harness.simulator.kfp.controller import EXEC_IMAGE
from harness.simulator.kfp.view import Stamp
from harness.simulator.kube.snapshots import PodSnapshot, pod_uid_of, uid

Manifest = dict[str, Any]
WAIT = "wait"
TEMPLATE_HASH = "pod-template-hash"  # which revision of its deployment a pod is of


def pod_labels(pod: PodSnapshot) -> Mapping[str, str]:
    """The pod's labels."""
    owner = pod.owner
    if owner.workflow:
        return {
            "pipeline/runid": owner.run_id,
            "pipelines.kubeflow.org/v2_component": "true",
            "workflows.argoproj.io/completed": "true" if owner.over else "false",
            "workflows.argoproj.io/workflow": owner.workflow,
            **dict(pod.own_labels),
        }
    template = {TEMPLATE_HASH: owner.template} if owner.template else {}
    return {"app": owner.app, "application-crd-id": "kubeflow-pipelines", **template, **dict(pod.own_labels)}


def pod_fields(pod: PodSnapshot) -> Mapping[str, str]:
    """Values of the field selectors."""
    return {
        "metadata.name": pod.name,
        "metadata.namespace": pod.namespace,
        "spec.nodeName": pod.node,
        "spec.restartPolicy": "Never" if pod.owner.workflow else "Always",
        "spec.schedulerName": "default-scheduler",
        "spec.serviceAccountName": _account(pod),
        "spec.hostNetwork": "false",
        "status.phase": pod.phase,
        "status.podIP": _ip(pod),
        "status.nominatedNodeName": pod.nominated,
    }


def pod_uid(pod: PodSnapshot) -> str:
    """The pod's UID."""
    return pod_uid_of(pod.namespace, pod.name, pod.created)


def _account(pod: PodSnapshot) -> str:
    return "pipeline-runner" if pod.owner.workflow else pod.owner.app


def _ip(pod: PodSnapshot) -> str:
    if pod.pulled is None or not pod.node_ip:
        return ""
    number = int(pod_uid(pod)[:4], 16)
    return f"10.244.{number >> 8}.{number & 255 or 1}"


def render_pod(pod: PodSnapshot, stamp: Stamp, classes: Mapping[int, str] = MappingProxyType({})) -> Manifest:
    """The manifest; `classes` are the cluster's PriorityClasses by their value."""
    metadata: Manifest = {
        "name": pod.name,
        "namespace": pod.namespace,
        "uid": pod_uid(pod),
        "creationTimestamp": stamp(pod.created),
        "labels": dict(pod_labels(pod)),
    }
    if pod.owner.workflow:
        metadata["annotations"] = {
            "kubectl.kubernetes.io/default-container": "main",
            "workflows.argoproj.io/node-id": pod.name,
            "workflows.argoproj.io/node-name": pod.path,
            "workflows.argoproj.io/pod-name-format": "v2",
        }
    metadata["ownerReferences"] = [_owner(pod)]
    if pod.deleting is not None:
        metadata["deletionTimestamp"] = stamp(pod.deleting + pod.grace_s)
        metadata["deletionGracePeriodSeconds"] = int(pod.grace_s)
    return {"metadata": metadata, "spec": _spec(pod, classes), "status": _status(pod, stamp)}


def _owner(pod: PodSnapshot) -> Manifest:
    if pod.owner.workflow:
        kind, name, version = "Workflow", pod.owner.workflow, "argoproj.io/v1alpha1"
        owner_uid = uid("workflow", pod.namespace, name)
    else:
        kind, name, version = "ReplicaSet", pod.name.rpartition("-")[0], "apps/v1"
        owner_uid = uid("replicaset", pod.namespace, name)
    return {
        "apiVersion": version, "kind": kind, "name": name, "uid": owner_uid, "controller": True,
        "blockOwnerDeletion": True,
    }  # fmt: skip


def _spec(pod: PodSnapshot, classes: Mapping[int, str]) -> Manifest:
    steps = bool(pod.owner.workflow)
    containers = [_container("main", pod.images[0], _resources(pod))]
    if steps:
        containers.insert(0, _container(WAIT, EXEC_IMAGE, {}))
    spec: Manifest = {
        "containers": containers,
        "restartPolicy": "Never" if steps else "Always",
        "serviceAccountName": _account(pod),
        "serviceAccount": _account(pod),
        "schedulerName": "default-scheduler",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
        "priority": pod.shape.priority,
        "securityContext": {},
        "tolerations": _tolerations(pod),
    }
    if steps:
        spec["initContainers"] = [_container(name, image, {}) for name, image in init_containers(pod)]
    selector = {
        each.key: each.values[0] for each in pod.shape.requirements if each.operator == "In" and len(each.values) == 1
    }
    others = [each for each in pod.shape.requirements if each.key not in selector]
    if selector:
        spec["nodeSelector"] = selector
    if others:
        terms = [{"key": each.key, "operator": each.operator, "values": list(each.values)} for each in others]
        required = {"nodeSelectorTerms": [{"matchExpressions": terms}]}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    if pod.owner.claim:
        spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": pod.owner.claim}}]
    if pod.shape.priority in classes:
        spec["priorityClassName"] = classes[pod.shape.priority]
    if pod.node:
        spec["nodeName"] = pod.node
    return spec


def init_containers(pod: PodSnapshot) -> list[tuple[str, str]]:
    """Names and images of those of a workflow's pod."""
    inits = [("init", EXEC_IMAGE)]
    if pod.role == "executor":
        inits.append(("kfp-launcher", pod.images[1]))
    return inits


def _container(name: str, image: str, resources: Manifest) -> Manifest:
    return {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "resources": resources,
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }


def _resources(pod: PodSnapshot) -> Manifest:
    shape, (limit_cpu, limit_memory) = pod.shape, pod.limits
    gpu = {"nvidia.com/gpu": str(shape.gpu)} if shape.gpu else {}
    requests = _amounts(shape.cpu, shape.memory) | gpu
    limits = _amounts(limit_cpu, limit_memory) | gpu
    return {name: value for name, value in (("limits", limits), ("requests", requests)) if value}


def _amounts(cpu: int, memory: int) -> Manifest:
    amounts = {}
    if cpu:
        amounts["cpu"] = cores(cpu)
    if memory:
        amounts["memory"] = quantity(memory)
    return amounts


def cores(thousandths: int) -> str:
    """A CPU quantity in canonical form: ``500m``, ``2``."""
    return str(thousandths // 1000) if thousandths % 1000 == 0 else f"{thousandths}m"


def quantity(size: float) -> str:
    """A byte quantity in canonical form: ``20Gi``, ``512Mi``."""
    whole = int(size)
    for unit, factor in (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10)):
        if whole and whole % factor == 0:
            return f"{whole // factor}{unit}"
    return str(whole)


def _tolerations(pod: PodSnapshot) -> list[Manifest]:
    given = [
        {name: value for name, value in zip(("key", "operator", "value", "effect"), each, strict=True) if value}
        for each in pod.shape.tolerations
    ]
    usual = [
        {"effect": "NoExecute", "key": f"node.kubernetes.io/{key}", "operator": "Exists", "tolerationSeconds": 300}
        for key in ("not-ready", "unreachable")
    ]
    return given + usual


# --- status -----------------------------------------------------------------------------------------------------


def _status(pod: PodSnapshot, stamp: Stamp) -> Manifest:
    requests = pod.shape.cpu or pod.shape.memory
    status: Manifest = {
        "phase": pod.phase,
        "qosClass": "Burstable" if requests or any(pod.limits) else "BestEffort",
        "conditions": _conditions(pod, stamp),
    }
    if pod.preempted and pod.deleting is not None:
        why = {
            "reason": "PreemptionByScheduler",
            "message": "default-scheduler: preempting to accommodate a higher priority pod",
        }
        status["conditions"].append(_condition("DisruptionTarget", "True", stamp(pod.deleting), why))
    if pod.nominated:
        status["nominatedNodeName"] = pod.nominated
    if pod.scheduled is None:
        return status
    status |= {"hostIP": pod.node_ip, "hostIPs": [{"ip": pod.node_ip}], "startTime": stamp(pod.scheduled)}
    if _ip(pod):
        status |= {"podIP": _ip(pod), "podIPs": [{"ip": _ip(pod)}]}
    if pod.owner.workflow:
        status["initContainerStatuses"] = [
            _container_status(pod, name, image, _init_state(pod, stamp)) for name, image in init_containers(pod)
        ]
        wait = _container_status(pod, WAIT, EXEC_IMAGE, _wait_state(pod, stamp))
        status["containerStatuses"] = [_container_status(pod, "main", pod.images[0], _main_state(pod, stamp)), wait]
    else:
        status["containerStatuses"] = [_container_status(pod, "main", pod.images[0], _main_state(pod, stamp))]
    return status


def _conditions(pod: PodSnapshot, stamp: Stamp) -> list[Manifest]:
    if pod.scheduled is None:
        if pod.unschedulable is None:
            return []
        why = {"reason": "Unschedulable", "message": pod.explanation}
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
    if pod.started is None:
        return {"waiting": {"reason": "PodInitializing"}}
    if pod.main_ended is None:
        return {"running": {"startedAt": stamp(pod.started)}}
    code, reason, message = (0, "Completed", "") if failed_later(pod) else (pod.exit_code, pod.reason, pod.message)
    return _terminated(code, reason, message, stamp(pod.started), stamp(pod.main_ended))


def _wait_state(pod: PodSnapshot, stamp: Stamp) -> Manifest:
    if pod.started is None:
        return {"waiting": {"reason": "PodInitializing"}}
    if pod.finished is None:
        return {"running": {"startedAt": stamp(pod.started)}}
    code, reason, message = (pod.exit_code, "Error", pod.message) if failed_later(pod) else (0, "Completed", "")
    return _terminated(code, reason, message, stamp(pod.started), stamp(pod.finished))


def failed_later(pod: PodSnapshot) -> bool:
    """The main container went well, but what came after it did not."""
    return (
        bool(pod.exit_code)
        and pod.finished is not None
        and pod.main_ended is not None
        and pod.main_ended < pod.finished
    )


def _terminated(code: int, reason: str, message: str, started: str, finished: str) -> Manifest:
    state = {"exitCode": code, "reason": reason, "startedAt": started, "finishedAt": finished}
    return {"terminated": state | ({"message": message} if message else {})}


def _container_status(pod: PodSnapshot, name: str, image: str, state: Manifest) -> Manifest:
    runs = "running" in state
    status: Manifest = {
        "name": name,
        "image": image,
        "imageID": "",
        "ready": runs and not name.startswith(("init", "kfp-launcher")),
        "started": runs,
        "restartCount": 0,
        "state": state,
        "lastState": {},
    }
    if "waiting" not in state:
        status["containerID"] = f"containerd://{uid(pod.name, name).replace('-', '')}"
        status["imageID"] = f"{image.partition(':')[0]}@sha256:{uid(image).replace('-', '') * 2}"
    if name.startswith(("init", "kfp-launcher")) and state.get("terminated", {}).get("exitCode") == 0:
        status["ready"] = True
    return status
