"""What an installation consists of, besides its runs: namespaces, components and their services, volumes."""

from dataclasses import dataclass
from typing import Any

from harness.simulator.kfp.view import Stamp
from harness.simulator.kube.pods import quantity
from harness.simulator.kube.snapshots import metadata, uid
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


@dataclass(frozen=True, slots=True)
class Service:
    """A service of type ClusterIP before the pods of a component; `number` gives its address."""

    name: str
    namespace: str
    component: str
    ports: tuple[tuple[str, int], ...]
    number: int


def services(profile: Profile, store: Installed) -> tuple[Service, ...]:
    """What other pods connect to."""
    own = profile.namespace
    ports: dict[str, tuple[tuple[str, int], ...]] = {
        "ml-pipeline": (("http", 8888), ("grpc", 8887)),
        "ml-pipeline-ui": (("http", 80),),
        "metadata-grpc-service": (("grpc-api", 8080),),
        "workflow-controller-metrics": (("metrics", 9090),),
        "mysql": (("mysql", 3306),),
        store.service: (("http", 9000),),
    }
    of = {"metadata-grpc-service": "metadata-grpc-deployment", "workflow-controller-metrics": "workflow-controller",
          store.service: store.deployment}  # fmt: skip
    if profile.hetida is not None:
        ports = {RUNTIME: (("http", 8090),), "hetida-designer-backend": (("http", 8090),)}
    found: list[tuple[str, str, str, tuple[tuple[str, int], ...]]] = [("kubernetes", "default", "", (("https", 443),))]
    found += [(name, own, of.get(name, name), each) for name, each in ports.items()]
    found += [("kube-dns", "kube-system", "coredns", (("dns-tcp", 53),))]
    found += [("metrics-server", "kube-system", "metrics-server", (("https", 443),))]
    return tuple(Service(*each, number) for number, each in enumerate(found, start=1))


def render_service(service: Service, stamp: Stamp) -> Manifest:
    """The manifest."""
    address = f"10.0.{service.number >> 8}.{service.number & 255}"
    ports = [{"name": name, "protocol": "TCP", "port": port, "targetPort": port} for name, port in service.ports]
    in_cluster = {"kubernetes.io/cluster-service": "true"} if service.name == "kube-dns" else {}
    return {
        "metadata": metadata(
            "service",
            service.name,
            stamp(0.0),
            service.namespace,
            labels={"app": service.component or service.name, **in_cluster},
        ),
        "spec": {
            "type": "ClusterIP",
            "clusterIP": address,
            "clusterIPs": [address],
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "internalTrafficPolicy": "Cluster",
            "ports": ports,
            "sessionAffinity": "None",
            **({"selector": {"app": service.component}} if service.component else {}),
        },
        "status": {"loadBalancer": {}},
    }


def render_namespace(name: str, stamp: Stamp) -> Manifest:
    """The manifest."""
    return {
        "metadata": metadata("namespace", name, stamp(0.0), labels={"kubernetes.io/metadata.name": name}),
        "spec": {"finalizers": ["kubernetes"]},
        "status": {"phase": "Active"},
    }


def render_claim(claim: Claim, stamp: Stamp) -> Manifest:
    """The manifest."""
    storage = quantity(claim.capacity)
    return {
        "metadata": metadata(
            "claim",
            claim.name,
            stamp(0.0),
            claim.namespace,
            finalizers=["kubernetes.io/pvc-protection"],
            labels={"application-crd-id": "kubeflow-pipelines"},
        ),
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": storage}},
            "storageClassName": "managed-csi",
            "volumeMode": "Filesystem",
            "volumeName": f"pvc-{uid('volume', claim.namespace, claim.name)}",
        },
        "status": {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": storage}},
    }
