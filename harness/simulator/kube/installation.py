"""What a Kubeflow Pipelines installation consists of, besides its runs: namespaces, deployments, volumes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.simulator.cluster import Pod, Shape, Toleration
from harness.simulator.kfp.view import Stamp
from harness.simulator.kube.pods import quantity
from harness.simulator.kube.policy import SYSTEM_CLASSES
from harness.simulator.kube.snapshots import Labels, uid
from harness.simulator.profile import Profile
from harness.simulator.store_products import Installed

Manifest = dict[str, Any]
_MI = 2**20


@dataclass(frozen=True, slots=True)
class Component:
    """A deployment. `cpu` in thousandths of a core and `memory` in bytes are what KFP's manifests request."""

    name: str
    image: str
    cpu: int
    memory: int
    namespace: str = ""  # "" is KFP's own
    claim: str = ""  # of the volume that its pod has mounted
    spread: bool = False  # its pods are on as many nodes as there are


@dataclass(frozen=True, slots=True)
class Deployment:
    """A deployment at one resource version."""

    component: Component
    namespace: str
    replicas: int
    ready: int = 0  # of its pods
    generation: int = 1


@dataclass(frozen=True, slots=True)
class Claim:
    """A volume claim at one resource version. `capacity` in bytes."""

    name: str
    namespace: str
    capacity: float


DATABASE_CLAIM = "mysql-pv-claim"
COMPONENTS = (
    Component("ml-pipeline", "ghcr.io/kubeflow/kfp-api-server:2.17.0", 250, 500 * _MI),
    Component("ml-pipeline-ui", "ghcr.io/kubeflow/kfp-frontend:2.17.0", 10, 70 * _MI),
    Component("ml-pipeline-persistenceagent", "ghcr.io/kubeflow/kfp-persistence-agent:2.17.0", 120, 500 * _MI),
    Component(
        "ml-pipeline-scheduledworkflow", "ghcr.io/kubeflow/kfp-scheduled-workflow-controller:2.17.0", 120, 100 * _MI
    ),
    Component("metadata-grpc-deployment", "gcr.io/tfx-oss-public/ml_metadata_store_server:1.14.0", 0, 0),
    Component("workflow-controller", "quay.io/argoproj/workflow-controller:v4.0.8", 100, 500 * _MI),
    Component("mysql", "mysql:8.4", 100, 800 * _MI, claim=DATABASE_CLAIM),
    Component("coredns", "mcr.microsoft.com/oss/kubernetes/coredns:v1.11.3", 100, 70 * _MI, "kube-system"),
    Component(
        "metrics-server", "mcr.microsoft.com/oss/kubernetes/metrics-server:v0.7.2", 100, 150 * _MI, "kube-system"
    ),
)
NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_CRITICAL = SYSTEM_CLASSES["system-cluster-critical"]  # of what is not KFP's but the cluster's
_EVERYWHERE = (Toleration("CriticalAddonsOnly", "Exists"),)


RUNTIME = "hetida-designer-runtime"
# What a runtime requests: for each worker, of which 60 % is used (210 MiB); and of all nodes' cores this share.
_WORKER_MEMORY, _RUNTIME_SHARE = 350 * _MI, 0.8


def components(profile: Profile, store: Installed) -> tuple[tuple[Component, int], ...]:
    """What is installed, with the number of replicas: the cluster's own, and hetida designer or Kubeflow Pipelines."""
    if profile.hetida is None:
        return tuple((each, 1) for each in (*COMPONENTS, store_component(store)))
    runtime = profile.hetida.runtime
    cores = _RUNTIME_SHARE * runtime.cores * runtime.nodes / runtime.replicas
    return (
        (
            Component(
                RUNTIME, "hetida/designer-runtime:0.9.8", round(1000 * cores), runtime.workers * _WORKER_MEMORY,
                spread=True,
            ),
            runtime.replicas,
        ),
        (Component("hetida-designer-backend", "hetida/designer-backend:0.9.8", 250, 500 * _MI), 1),
        (Component("hetida-designer-db", "postgres:15", 100, 256 * _MI), 1),
        *((each, 1) for each in COMPONENTS if each.namespace),
    )  # fmt: skip


def store_component(store: Installed) -> Component:
    """The deployment of the artifact store."""
    return Component(store.deployment, store.image, store.cpu, store.memory, claim=store.claim)


def system_pod(component: Component, namespace: str, number: int = 0) -> Pod:
    """One pod of a deployment, as its replica set names it; `number` counts those that it ever had."""
    replica_set = uid("template", component.name)[:10].replace("-", "7")
    pod = Pod(
        f"{component.name}-{replica_set}-{uid(component.name, str(number))[:5]}",
        namespace,
        Shape(
            component.cpu, component.memory, tolerations=_EVERYWHERE, priority=_CRITICAL if component.namespace else 0
        ),
        (component.image,),
        owner=Labels(app=component.name, deployment=component.name, claim=component.claim),
    )
    pod.usage_cpu, pod.usage_memory = component.cpu / 4000, component.memory * 0.6
    return pod


def render_namespace(name: str, stamp: Stamp) -> Manifest:
    """The manifest."""
    return {
        "metadata": {
            "name": name,
            "uid": uid("namespace", name),
            "creationTimestamp": stamp(0.0),
            "labels": {"kubernetes.io/metadata.name": name},
        },
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def deployment_labels(deployment: Deployment) -> Mapping[str, str]:
    """The deployment's labels."""
    return {"app": deployment.component.name, "application-crd-id": "kubeflow-pipelines"}


def render_deployment(deployment: Deployment, stamp: Stamp) -> Manifest:
    """The manifest."""
    component, replicas = deployment.component, deployment.replicas
    labels = dict(deployment_labels(deployment))
    requests = {"cpu": f"{component.cpu}m", "memory": quantity(component.memory)} if component.cpu else {}
    container = {"name": "main", "image": component.image, "resources": {"requests": requests} if requests else {}}
    available = deployment.ready >= replicas
    condition = {
        "type": "Available",
        "status": str(available),
        "reason": f"MinimumReplicas{'Available' if available else 'Unavailable'}",
        "message": f"Deployment {'has' if available else 'does not have'} minimum availability.",
        "lastTransitionTime": stamp(0.0),
        "lastUpdateTime": stamp(0.0),
    }
    counts = {"replicas": replicas, "updatedReplicas": replicas, "readyReplicas": deployment.ready,
              "availableReplicas": deployment.ready, "unavailableReplicas": replicas - deployment.ready}  # fmt: skip
    return {
        "metadata": {
            "name": component.name,
            "namespace": deployment.namespace,
            "uid": uid("deployment", deployment.namespace, component.name),
            "creationTimestamp": stamp(0.0),
            "generation": deployment.generation,
            "labels": labels,
        },
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
        "status": {
            "observedGeneration": deployment.generation,
            **{name: count for name, count in counts.items() if count > 0},
            "conditions": [condition],
        },
    }


def render_claim(claim: Claim, stamp: Stamp) -> Manifest:
    """The manifest."""
    storage = quantity(claim.capacity)
    return {
        "metadata": {
            "name": claim.name,
            "namespace": claim.namespace,
            "uid": uid("claim", claim.namespace, claim.name),
            "creationTimestamp": stamp(0.0),
            "finalizers": ["kubernetes.io/pvc-protection"],
            "labels": {"application-crd-id": "kubeflow-pipelines"},
        },
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": storage}},
            "storageClassName": "managed-csi",
            "volumeMode": "Filesystem",
            "volumeName": f"pvc-{uid('volume', claim.namespace, claim.name)}",
        },
        "status": {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": storage}},
    }
