"""Manifests of pods, as written by Argo and kubelets.

A pod of a KFP v2 run has the run's id in the label ``pipeline/runid``, its workflow in
``workflows.argoproj.io/workflow``, and its position in the workflow in the annotation
``workflows.argoproj.io/node-name``: ``training-x7k2p(0).root(0).prepare-driver(0)`` is the driver of the task
*prepare*, and ``training-x7k2p(0).root(0).prepare(0).executor(0)`` its executor. As on a real cluster, no label has the
task's name.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from harness.model.argo.nodes import node_id
from harness.simulator.cluster import Requirement
from harness.simulator.cluster.kueue import GATE
from harness.simulator.cluster.shapes import cores, quantity
from harness.simulator.dask.operator import STAGE
from harness.simulator.kfp.view import Stamp
from harness.simulator.kube_api import Manifest
from harness.simulator.kube_objects.pod_status import WAIT, init_containers, pod_ip, pod_uid, render_status
from harness.simulator.kube_objects.snapshots import PodSnapshot, uid
from harness.simulator.workflows.graph import EXECUTOR
from harness.simulator.workflows.templates import EXEC_IMAGE

TEMPLATE_HASH = "pod-template-hash"  # identifies the revision of a deployment's pod


def pod_labels(pod: PodSnapshot) -> Mapping[str, str]:
    """The pod's labels, for label selectors."""
    owner = pod.owner
    if owner.workflow:
        of_kfp = {"pipeline/runid": owner.run_id, "pipelines.kubeflow.org/v2_component": "true"}
        return {
            **(of_kfp if owner.run_id else {}),
            "workflows.argoproj.io/completed": "true" if owner.over else "false",
            "workflows.argoproj.io/workflow": owner.workflow,
            **dict(pod.own_labels),
        }
    if owner.dask:
        return dict(pod.own_labels)
    template = {TEMPLATE_HASH: owner.template} if owner.template else {}
    return {"app": owner.app, "application-crd-id": "kubeflow-pipelines", **template, **dict(pod.own_labels)}


def pod_fields(pod: PodSnapshot) -> Mapping[str, str]:
    """The values of the fields that can be selected."""
    return {
        "metadata.name": pod.name,
        "metadata.namespace": pod.namespace,
        "spec.nodeName": pod.node,
        "spec.restartPolicy": _restarts(pod),
        "spec.schedulerName": "default-scheduler",
        "spec.serviceAccountName": _account(pod),
        "spec.hostNetwork": "false",
        "status.phase": pod.phase,
        "status.podIP": pod_ip(pod),
        "status.nominatedNodeName": pod.nominated,
    }


def _account(pod: PodSnapshot) -> str:
    if pod.owner.workflow:
        return "pipeline-runner" if pod.owner.run_id else "default"
    return pod.owner.app or "default"


def _restarts(pod: PodSnapshot) -> str:
    return "Never" if pod.owner.workflow or pod.role == STAGE else "Always"


def render_pod(pod: PodSnapshot, stamp: Stamp, classes: Mapping[int, str] = MappingProxyType({})) -> Manifest:
    """The manifest of a pod; `classes` are the names of PriorityClasses by value."""
    metadata: Manifest = {
        "name": pod.name,
        "namespace": pod.namespace,
        "uid": pod_uid(pod),
        "creationTimestamp": stamp(pod.created),
        "generation": 1 if pod.deleting is None else 2,
        "labels": dict(pod_labels(pod)),
    }
    if pod.owner.workflow:
        of_kfp = {
            "pipelines.kubeflow.org/runtime-role": "launcher" if pod.role == EXECUTOR else "driver",
            "pipelines.kubeflow.org/v2_component": "true",
            "sidecar.istio.io/inject": "false",
        }
        metadata["annotations"] = {
            "kubectl.kubernetes.io/default-container": "main",
            **(of_kfp if pod.owner.run_id else {}),
            "workflows.argoproj.io/node-id": node_id(pod.path, pod.owner.workflow),
            "workflows.argoproj.io/node-name": pod.path,
        }
    metadata["ownerReferences"] = [_owner(pod)]
    if pod.deleting is not None:
        metadata["deletionTimestamp"] = stamp(pod.deleting + pod.grace_s)
        metadata["deletionGracePeriodSeconds"] = int(pod.grace_s)
    return {"metadata": metadata, "spec": _spec(pod, classes), "status": render_status(pod, stamp)}


def _owner(pod: PodSnapshot) -> Manifest:
    if pod.owner.workflow:
        kind, name, version = "Workflow", pod.owner.workflow, "argoproj.io/v1alpha1"
        owner_uid = uid("workflow", pod.namespace, name)
    elif pod.role == STAGE:
        kind, name, version = "DaskCluster", pod.owner.dask, "kubernetes.dask.org/v1"
        owner_uid = uid("daskcluster", pod.namespace, name)
    else:
        kind, name, version = "ReplicaSet", pod.name.rpartition("-")[0], "apps/v1"
        owner_uid = uid("replicaset", pod.namespace, name)
    return {
        "apiVersion": version, "kind": kind, "name": name, "uid": owner_uid, "controller": True,
        "blockOwnerDeletion": True,
    }  # fmt: skip


def _spec(pod: PodSnapshot, classes: Mapping[int, str]) -> Manifest:
    steps = bool(pod.owner.workflow)
    main = pod.owner.container
    containers = [{**_container(main["name"], pod.images[0], _resources(pod)), **main}]
    if steps:
        containers.insert(0, _container(WAIT, EXEC_IMAGE, {}))
    spec: Manifest = {
        "containers": containers,
        "restartPolicy": _restarts(pod),
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
    if pod.shape.selector:
        spec["nodeSelector"] = dict(pod.shape.selector)
    if pod.shape.affinity:
        required = {"nodeSelectorTerms": [{"matchExpressions": _expressions(term)} for term in pod.shape.affinity]}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    if pod.deadline_s:
        spec["activeDeadlineSeconds"] = pod.deadline_s
    if pod.owner.claim:
        spec["volumes"] = [{"name": "data", "persistentVolumeClaim": {"claimName": pod.owner.claim}}]
    if pod.shape.priority in classes:
        spec["priorityClassName"] = classes[pod.shape.priority]
    if pod.node:
        spec["nodeName"] = pod.node
    if pod.gated:
        spec["schedulingGates"] = [{"name": GATE}]
    return spec


def _expressions(term: Iterable[Requirement]) -> list[Manifest]:
    return [{"key": e.key, "operator": e.operator, **({"values": list(e.values)} if e.values else {})} for e in term]


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


def _tolerations(pod: PodSnapshot) -> list[Manifest]:
    given = [
        {name: value for name, value in zip(("key", "operator", "value", "effect"), toleration, strict=True) if value}
        for toleration in pod.shape.tolerations
    ]
    usual = [
        {"effect": "NoExecute", "key": f"node.kubernetes.io/{key}", "operator": "Exists", "tolerationSeconds": 300}
        for key in ("not-ready", "unreachable")
    ]
    return given + usual
